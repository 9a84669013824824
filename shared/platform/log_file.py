"""The log file of one machine."""

from __future__ import annotations

import errno
import os
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Final

from shared.platform.runtime import runtime

WORKER: Final = "KHO_WORKER"
"""The variable of processes that write to a log file which another process rotates."""
_APPENDING: Final = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
_FORMER_FILES: Final = 3


class LogFile:
    """A log file to which threads and processes append lines, each by one system call.

    It may be impossible to write: a full disk must not fail requests or fill the terminal.
    """

    def __init__(self, path: str, *, max_bytes: int = 10_000_000, checked_bytes: int = 100_000) -> None:
        self._path = Path(path).absolute()
        self._max_bytes = max_bytes
        self._checked_bytes = checked_bytes
        """After so many bytes, the process looks if the file is too large, or has become another one."""
        self._descriptor = -1
        self._unchecked = 0
        self._changing = threading.Lock()
        self._reported = False

    def __del__(self) -> None:
        """Close the file. No thread writes to it any more: it would refer to this object."""
        if self._descriptor >= 0:
            os.close(self._descriptor)

    def write(self, line: bytes) -> None:
        """Append a line. Drop it if that fails; the file is opened again for the next one."""
        try:
            if self._descriptor < 0 or self._unchecked > self._checked_bytes:
                self._open()
            self._unchecked += len(line)
            if os.write(self._descriptor, line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            self._unchecked = self._checked_bytes + 1
            self._report(error)

    def _open(self) -> None:
        """Open the file, or another one after it has grown too large or was replaced. The descriptor stays the same.

        Other threads may be writing to it: they write to the former file or to the new one.
        """
        with self._changing:
            if self._descriptor >= 0 and self._unchecked <= self._checked_bytes:
                return  # another thread was first
            if not runtime.environment.get(WORKER):
                self._rotate()
            opened = os.open(self._path, _APPENDING, 0o666)
            if self._descriptor < 0:
                self._descriptor = opened
            else:
                os.dup2(opened, self._descriptor, inheritable=False)
                os.close(opened)
            self._unchecked = 0

    def _rotate(self) -> None:
        """Rename a large file. Other processes see at their next check that it has become another one."""
        if not self._path.exists() or self._path.stat().st_size < self._max_bytes:
            return
        if sys.platform == "win32" and self._descriptor >= 0:  # there, no open file is renamed
            with Path(os.devnull).open("wb") as nowhere:
                os.dup2(nowhere.fileno(), self._descriptor, inheritable=False)
        for number in range(_FORMER_FILES, 0, -1):
            source = self._former(number - 1) if number > 1 else self._path
            with suppress(FileNotFoundError):
                source.replace(self._former(number))

    def _former(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")

    def _report(self, error: OSError) -> None:
        if not self._reported:
            self._reported = True
            reason = error.strerror or type(error).__name__
            with suppress(OSError, ValueError):
                print(f"{self._path} cannot be written ({reason}): log records are lost.", file=sys.stderr)
