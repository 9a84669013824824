"""The free disk space that an embedded store needs, and a reserve with which it opens on a full disk."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from shared.platform.config import config
from shared.rpc.errors import disk_full

if TYPE_CHECKING:
    from collections.abc import Iterator

_RESERVE_BYTES: Final = 4 << 20
_BLOCK_BYTES: Final = 1 << 12


@contextmanager
def reserve_released(folder: Path) -> Iterator[None]:
    """On a full disk, release the reserve file of `folder` in the block. Allocate what is missing of it afterwards.

    Stores write small files to open. Other programs fill what is free, so the reserve is held at all other times.
    """
    reserve = folder / "reserve"
    if shutil.disk_usage(folder).free < _RESERVE_BYTES:
        reserve.unlink(missing_ok=True)
    try:
        yield
    finally:
        with suppress(OSError), reserve.open("ab", buffering=0) as file:
            # Random bytes: some file systems do not allocate blocks of zeros.
            while (missing := _RESERVE_BYTES - file.tell()) > 0:
                file.write(os.urandom(min(missing, _BLOCK_BYTES)))


def require_free_space(folder: Path, needed: int = 0) -> None:
    """Raise `Unavailable` if fewer than `needed` bytes and the configured minimum are free.

    The engine writes to mapped files: with no space left, the operating system kills its process.
    """
    if is_full(folder, needed):
        raise disk_full()


def is_full(folder: Path, needed: int = 0) -> bool:
    """Return True if fewer than `needed` bytes and the configured minimum are free."""
    return shutil.disk_usage(folder).free < (config().min_free_mb << 20) + needed


def is_store_full() -> bool:
    """Return True if the disk of this machine's stores is full."""
    folder = config().qdrant_folder
    return bool(folder) and is_full(Path(folder).parent)
