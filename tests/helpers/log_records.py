"""Records of Kho's log."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


def log_records(file: Path, message: str) -> list[dict[str, Any]]:
    """Return the records of a message."""
    records = [json.loads(line) for line in file.read_text().splitlines()]
    return [record for record in records if record["message"] == message]
