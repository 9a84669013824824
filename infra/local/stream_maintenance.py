"""Maintenance of the local engine's stream records: an index by sequence number, and their retention."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from typing import TYPE_CHECKING, Final

from shared.telemetry import logger

if TYPE_CHECKING:
    from pathlib import Path

_RETENTION_SECONDS: Final = 7 * 24 * 3600
# Without it, each write and each poll reads every stream record of every table.
_INDEX: Final = (
    "CREATE INDEX IF NOT EXISTS kho_changes ON _stream_records (table_name, CAST(sequence_number AS INTEGER))"
)
# The last record of each table stays: the engine continues its sequence numbers from it.
_TRIM: Final = (
    "DELETE FROM _stream_records WHERE created_at < ?"
    " AND id NOT IN (SELECT MAX(id) FROM _stream_records GROUP BY table_name)"
)


def index_and_trim(file: Path) -> None:
    """Index the stream records in the engine's `file`, and delete those older than a week."""
    try:
        with closing(sqlite3.connect(file, timeout=5)) as database, database:
            database.execute(_INDEX)
            database.execute(_TRIM, [int(time.time()) - _RETENTION_SECONDS])
    except sqlite3.Error as error:
        # The engine works without the index, but slower. Another version of it may have another schema.
        logger.warning("store", extra={"failure": str(error)})
