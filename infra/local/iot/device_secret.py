"""The secret of the passwords of claimed boards, kept in the data folder. Deployed, it is in Secrets Manager."""

from __future__ import annotations

import os
import secrets
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

_FILE: Final = "device-secret"


def device_secret(data: Path) -> str:
    """Return the folder's secret, which is created if necessary."""
    return _read(data / _FILE) or _create(data / _FILE)


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return ""


def _create(file: Path) -> str:
    """Write a new secret. The folder is locked by this process; a crash leaves no part of a file."""
    secret = secrets.token_hex(32)
    new = file.with_suffix(".new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as written:
        written.write(f"{secret}\n")
        written.flush()
        os.fsync(written.fileno())
    new.replace(file)
    return secret
