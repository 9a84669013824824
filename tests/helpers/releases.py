"""Data folders that earlier releases have written."""

from __future__ import annotations

import itertools
import json
import sqlite3
import tarfile
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

RELEASES: Final = Path(__file__).parents[1] / "data" / "releases"
TENANT: Final = "garden"
QUESTION: Final = "When are ferns watered?"
SECRETS: Final = "secrets.json"
_EXPIRIES: Final = ("expires_at", "idle_until", "ends_at")


@dataclass(frozen=True, slots=True)
class ReleaseData:
    """A data folder as a release has left it, with the keys and tokens that it gave out."""

    folder: Path
    secrets: dict[str, Any]


def unpack(archive: Path, folder: Path) -> ReleaseData:
    """Unpack a data folder that `python -m tests.record_release` has recorded, as if it was recorded now."""
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    folder.chmod(0o700)
    secrets = json.loads((folder / SECRETS).read_text())
    _prolong(folder / "dynamodb.sqlite", int(time.time()) - secrets["recorded_at"])
    return ReleaseData(folder, secrets)


def _prolong(database: Path, seconds: int) -> None:
    """Move the times at which items expire."""
    with closing(sqlite3.connect(database)) as store, store:
        tables = store.execute("SELECT name FROM sqlite_master WHERE name LIKE 'kho-%Table'").fetchall()
        for (table,), name in itertools.product(tables, _EXPIRIES):
            value = f"json_extract(item_json, '$.{name}.N')"
            moved = f"json_set(item_json, '$.{name}.N', CAST(CAST({value} AS INTEGER) + ? AS TEXT))"
            store.execute(f'UPDATE "{table}" SET item_json = {moved} WHERE {value} IS NOT NULL', [seconds])
