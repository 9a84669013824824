"""The comparison of a data folder's indexes with the database: what is stored, and what searches find of it.

The numbers are read from the engine's own file, by its key index: a scan through the engine reads every body.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from shared.experiences.index import COLLECTION as EXPERIENCES
from shared.search.message_index import INDEX as MESSAGES
from shared.search.store import is_whole

if TYPE_CHECKING:
    from pathlib import Path

DATABASE: Final = "dynamodb.sqlite"
_WAIT_SECONDS: Final = 5
_DOCUMENTS: Final = """SELECT count(*) FROM "kho-DocumentsTable"
    WHERE sk = 'S:document' AND json_extract(item_json, '$.delete_at') IS NULL"""
_COLLECTED: Final = """SELECT count(*) FROM "kho-KnowledgeTable" WHERE pk LIKE '%#documents#%'
    AND json_extract(item_json, '$.indexed_revision.N') > '0' AND json_extract(item_json, '$.gone') IS NULL"""
_EXPERIENCES: Final = """SELECT count(*) FROM "kho-ExperiencesTable"
    WHERE pk LIKE 'S:content#%' AND json_extract(item_json, '$.deleted_at') IS NULL"""
_MESSAGES: Final = """SELECT count(*) FROM "kho-MemoryTable" WHERE sk LIKE 'S:message#%'
    AND json_extract(item_json, '$.conversation') IS NOT NULL AND json_extract(item_json, '$.deleted_at') IS NULL"""
_MARKED: Final = """SELECT count(*) FROM "kho-MemoryTable" WHERE pk LIKE '%#unindexed#%'"""
_WAITING: Final = """SELECT count(*) FROM _stream_records
    WHERE table_name = ? AND CAST(sequence_number AS INTEGER) > ?"""


def mark_lost_indexes(data: Path) -> None:
    """Mark an index as damaged that is missing although texts were indexed. Call it before one is opened.

    Otherwise an empty index is made in its place, and searches find nothing without an error.
    """
    for folder, count in zip(_folders(data), (indexed_documents, _experiences, _messages), strict=True):
        shard = folder / "shard"
        if not shard.exists() and count(data) > 0:
            with suppress(OSError):  # on a full disk no index is made either
                shard.mkdir(parents=True)


def damaged_indexes(data: Path) -> list[Path]:
    """Return the folders of the indexes that miss their files."""
    return [folder for folder in _folders(data) if (folder / "shard").exists() and not is_whole(folder / "shard")]


def indexed_documents(data: Path) -> int:
    """Count the documents that the main index must have: neither deleted nor waiting to be indexed."""
    waiting = _waiting(data, "kho-DocumentsTable", "index_documents")
    return max(0, _count(data, _DOCUMENTS) - waiting) + _count(data, _COLLECTED)


def _folders(data: Path) -> tuple[Path, ...]:
    passages = data / "passages"
    return passages, passages / EXPERIENCES, passages / MESSAGES


def _messages(data: Path) -> int:
    return _count(data, _MESSAGES) - _count(data, _MARKED)


def _experiences(data: Path) -> int:
    return _count(data, _EXPERIENCES) - _waiting(data, "kho-ExperiencesTable", "index_experiences")


def _waiting(data: Path, table: str, worker: str) -> int:
    """Count the changes of a table that its worker has still to index. Without its position, it reads all again."""
    try:
        positions = json.loads((data / f"stream-workers-{worker}.json").read_text())
        position = max((int(number) for number in positions.values()), default=0)
    except (OSError, ValueError, AttributeError):
        position = 0
    return _count(data, _WAITING, table, position)


def _count(data: Path, query: str, *values: object) -> int:
    """Return the number that the query counts, 0 if the database has no such table or cannot be read."""
    file = f"file:{quote(str(data / DATABASE))}?mode=ro"
    try:
        with closing(sqlite3.connect(file, timeout=_WAIT_SECONDS, uri=True)) as database:
            (number,) = database.execute(query, values).fetchone()
    except sqlite3.Error:
        return 0
    return int(number)
