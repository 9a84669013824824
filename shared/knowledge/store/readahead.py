"""What will be asked for soon is in memory by then."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

_SHARE: Final = 4
"""A folder may take a quarter of the machine's memory; of a larger one, each part is read when it is asked for."""


def read_ahead(folder: Path) -> None:
    """Have the system read the files of `folder` ahead, where they are not too large for its memory."""
    if sys.platform != "linux":
        return
    left = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // _SHARE
    found = []
    for file in folder.rglob("*"):
        with suppress(FileNotFoundError):  # merged with another meanwhile
            found.append((file, file.stat().st_size))
    if sum(size for _, size in found) > left:
        return
    for file, _ in found:
        with suppress(OSError):
            opened = os.open(file, os.O_RDONLY)
            try:
                os.posix_fadvise(opened, 0, 0, os.POSIX_FADV_WILLNEED)
            finally:
                os.close(opened)
