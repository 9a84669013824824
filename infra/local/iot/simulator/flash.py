"""A board's flash: named values that survive a restart, with the limits of the firmware's storage."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

FlashValue = str | int

_MAX_NAME: Final = 15
_MAX_VALUE_BYTES: Final = 3_999


class FirmwareAbort(Exception):
    """The firmware aborts and restarts, and does so again at each check-in with this answer."""


class Flash:
    """The flash as a file in a folder. A folder without one is an erased flash."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._file = folder / "flash.json"
        self._values: dict[str, dict[str, FlashValue]] = {}
        if self._file.exists():
            self._values = json.loads(self._file.read_text(encoding="utf-8"))

    def namespace(self, namespace: str) -> dict[str, FlashValue]:
        """Return a copy of the values of a namespace."""
        return dict(self._values.get(namespace, {}))

    def write(self, namespace: str, name: str, value: FlashValue) -> None:
        """Store a value. Raise FirmwareAbort if its name or the value is too long."""
        if len(name.encode()) > _MAX_NAME:
            raise FirmwareAbort(f"the name '{name}' is longer than {_MAX_NAME} characters")
        if len(str(value).encode()) > _MAX_VALUE_BYTES:
            raise FirmwareAbort(f"the value of '{name}' is longer than {_MAX_VALUE_BYTES} bytes")
        values = self._values.setdefault(namespace, {})
        if values.get(name) == value:
            return
        values[name] = value
        # The file holds the board's credentials.
        with os.fdopen(
            os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8"
        ) as file:
            json.dump(self._values, file, indent=1)
