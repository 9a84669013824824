"""Reads index files into memory before they are needed."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

_SHARE: Final = 4
"""A folder may take a quarter of the machine's memory. A larger one is read on demand."""


def read_ahead(folder: Path) -> None:
    """Ask the system to read the files of `folder` ahead, unless they are too large for its memory."""
    if sys.platform != "linux":
        return
    limit = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // _SHARE
    files = []
    for file in folder.rglob("*"):
        with suppress(FileNotFoundError):  # merged with another file in the meantime
            files.append((file, file.stat().st_size))
    if sum(size for _, size in files) > limit:
        return
    for file, _ in files:
        with suppress(OSError):
            descriptor = os.open(file, os.O_RDONLY)
            try:
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_WILLNEED)
            finally:
                os.close(descriptor)
