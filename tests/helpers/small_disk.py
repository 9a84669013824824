"""File systems of a fixed size, for tests of a full disk. Mounting them takes root's rights."""

from __future__ import annotations

import os
import subprocess
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FileSystem = Literal["tmpfs", "ext4"]
_SIZE: Final = "400M"
_BLOCKS: Final = (1 << 20, 512)


def mountable() -> list[FileSystem]:
    """Return the file systems that this process can mount."""
    return [kind for kind in ("tmpfs", "ext4") if _can_mount(kind)]


@contextmanager
def mounted(kind: FileSystem, folder: Path) -> Iterator[Path]:
    """Mount a new file system of 400 MB below `folder`."""
    disk = folder / kind
    disk.mkdir()
    if kind == "tmpfs":
        command = ["mount", "-t", "tmpfs", "-o", f"size={_SIZE}", "tmpfs"]
    else:
        image = folder / f"{kind}.img"
        _run("truncate", "-s", _SIZE, str(image))
        _run("mkfs.ext4", "-q", str(image))
        command = ["mount", "-o", "loop", str(image)]
    _run(*command, str(disk))
    try:
        yield disk
    finally:
        _run("umount", "--lazy", str(disk))


def fill(disk: Path) -> None:
    """Write a file until nothing is left for others."""
    for size in _BLOCKS:
        with (disk / "filler").open("ab", buffering=0) as filler:
            try:
                while filler.write(bytes(size)) == size:
                    pass
            except OSError:
                continue


def make_room(disk: Path) -> None:
    """Remove what `fill` wrote."""
    (disk / "filler").unlink()


def _can_mount(kind: FileSystem) -> bool:
    if os.geteuid() != 0:
        return False
    with TemporaryDirectory() as folder:
        from pathlib import Path

        try:
            with mounted(kind, Path(folder)):
                return True
        except (OSError, subprocess.CalledProcessError):
            return False


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)
