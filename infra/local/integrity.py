"""Checks of a data folder's database and index. Problems are reported at start with their remedy."""

from __future__ import annotations

import shlex
import sqlite3
import sys
import threading
from contextlib import closing, suppress
from typing import TYPE_CHECKING
from urllib.parse import quote

from shared.config import ConfigurationError, config
from shared.dynamodb import Table
from shared.knowledge import keys
from shared.knowledge.index import knowledge_index
from shared.knowledge.store import FolderLocked
from shared.rpc.errors import KhoError
from shared.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def start_checks(data: Path, *, embedded: bool) -> None:
    """Check the folder in the background: checking a database takes a second per GB."""
    checks: list[Callable[[Path], str]] = [_damaged_database] if embedded else []
    if not config().qdrant_url:
        # Decided before a worker creates an empty index.
        checks.append(_unusable_index if (data / "passages" / "shard").exists() else _missing_index)
    threading.Thread(target=_check, args=[data, checks], name="checks", daemon=True).start()


def _check(data: Path, checks: list[Callable[[Path], str]]) -> None:
    for check in checks:
        if problem := check(data):
            logger.error("data folder", extra={"failure": problem})
            with suppress(OSError):
                print(f"Warning: {problem}", file=sys.stderr, flush=True)


def _damaged_database(data: Path) -> str:
    """Describe the damage of the database, if there is any."""
    database = data / "dynamodb.sqlite"
    try:
        with closing(sqlite3.connect(f"file:{quote(str(database))}?mode=ro", uri=True, timeout=5)) as connection:
            (result,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.OperationalError:  # it is locked, or has ended with the server
        return ""
    except sqlite3.DatabaseError as error:
        result = str(error)
    if result == "ok":
        return ""
    reason = " ".join(result.split())
    return f"The database {database} is damaged ({reason}). End this server, and restore {data} from a backup."


def _missing_index(data: Path) -> str:
    """Describe the loss of an index that was removed after documents had been indexed."""
    if not ((data / "stream-workers-index_documents.json").exists() or _has_collected_documents(data)):
        return ""
    return f"The index {data / 'passages'} is missing: searches do not find earlier documents. {_rebuild(data)}"


def _has_collected_documents(data: Path) -> bool:
    if not (data / "stream-workers-index_knowledge.json").exists():
        return False
    try:
        return any(Table(config().knowledge_table).keys(keys.partition("", "documents", "")))
    except KhoError:
        return False


def _unusable_index(data: Path) -> str:
    """Describe why the index cannot be opened, if it cannot."""
    try:
        knowledge_index()
    except KhoError as error:
        return f"The index {data / 'passages'} cannot be used: {error.message} {error.guidance}"
    except (ConfigurationError, FolderLocked) as error:
        return f"The index {data / 'passages'} cannot be used: {error}."
    return ""


def _rebuild(data: Path) -> str:
    return f"End this server, and run: kho reindex --data {shlex.quote(str(data))}"
