"""What the local engine remembers of changes, for streams: found by their numbers, and not remembered for ever."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from typing import TYPE_CHECKING, Final

from shared.telemetry import logger

if TYPE_CHECKING:
    from pathlib import Path

_KEPT_SECONDS: Final = 7 * 24 * 3600
# Each write, and each look for what is new, would read all changes of all tables that there ever were.
_INDEX: Final = (
    "CREATE INDEX IF NOT EXISTS kho_changes ON _stream_records (table_name, CAST(sequence_number AS INTEGER))"
)
# The last of each table stays: the engine counts on from it.
_FORGET: Final = (
    "DELETE FROM _stream_records WHERE created_at < ?"
    " AND id NOT IN (SELECT MAX(id) FROM _stream_records GROUP BY table_name)"
)


def index_and_trim(file: Path) -> None:
    """Index the changes of the engine that runs on `file`, and forget those of more than a week ago."""
    try:
        with closing(sqlite3.connect(file, timeout=5)) as database, database:
            database.execute(_INDEX)
            database.execute(_FORGET, [int(time.time()) - _KEPT_SECONDS])
    except sqlite3.Error as error:
        # It serves without, only slower: another version of the engine may keep them otherwise.
        logger.warning("store", extra={"failure": str(error)})
