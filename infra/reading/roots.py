"""The folders under which files may be read, and no way out of them."""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from infra.reading.failures import Absent, OutsideRoots, Unreadable
from shared.rpc.text import is_encodable

if TYPE_CHECKING:
    from collections.abc import Sequence

# A FIFO would keep an ordinary open waiting for its writer; a link put in place meanwhile must not be followed.
_OPENING: Final = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
_BY_FOLDER: Final = os.open in os.supports_dir_fd
_CHUNK: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Place:
    """A path without links, the root that it lies under, and the name it has for others."""

    root: Path
    path: Path
    name: str


class Roots:
    """The allowed folders."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self.folders = [folder.resolve() for folder in folders]

    def place(self, path: str | Path) -> Place:
        """Where `path` leads, links followed; relative ones start from the first root."""
        if not os.fspath(path) or "\0" in os.fspath(path):
            raise Absent("is not a path")
        if not is_encodable(os.fspath(path)):
            raise Unreadable("has a name that is not UTF-8")
        try:
            wanted = self.folders[0] / Path(path).expanduser()
            real = wanted.resolve()
            root = self._root_of(real)
            if root is None:
                # Looked at before what exists, which is nobody's business out there.
                raise OutsideRoots("leads outside the allowed roots")
            wanted.resolve(strict=True)
        except (FileNotFoundError, NotADirectoryError):
            raise Absent("does not exist under the allowed roots") from None
        except (OSError, RuntimeError):
            raise Unreadable("cannot be resolved: a loop of links, or a name that is too long") from None
        return Place(root, real, self.name(real))

    def name(self, path: Path) -> str:
        """What a path under the roots is called: from its root on, which is named where there are several."""
        root = self._root_of(path)
        relative = path.relative_to(root).as_posix() if root else path.name
        return f"{root.name}/{relative}" if root and len(self.folders) > 1 else relative

    def _root_of(self, path: Path) -> Path | None:
        return next((root for root in self.folders if path == root or root in path.parents), None)


def read_bytes(place: Place, limit: int) -> bytes:
    """The content of a regular file of at most `limit` bytes."""
    try:
        descriptor = _open(place)
    except OSError as error:
        raise Unreadable(_reason(error)) from None
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise Unreadable("is not a regular file")
        if status.st_size > limit:
            raise Unreadable(f"is larger than {limit >> 20} MiB")
        content = bytearray()
        try:
            while len(content) <= limit and (read := file.read(_CHUNK)):
                content += read
        except OSError as error:
            raise Unreadable(_reason(error)) from None
    if len(content) > limit:
        raise Unreadable(f"is larger than {limit >> 20} MiB")
    return bytes(content)


def _open(place: Place) -> int:
    """Open the file step by step from its root, so that no link that appears meanwhile leads out of it."""
    if not _BY_FOLDER:
        return os.open(place.path, _OPENING)
    *folders, name = place.path.relative_to(place.root).parts or (".",)
    at = os.open(place.root, os.O_RDONLY | os.O_DIRECTORY)
    for folder in folders:
        try:
            inside = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=at)
        finally:
            os.close(at)
        at = inside
    try:
        return os.open(name, _OPENING, dir_fd=at)
    finally:
        os.close(at)


def _reason(error: OSError) -> str:
    if error.errno in (errno.EACCES, errno.EPERM):
        return "may not be read by this user"
    if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
        return "was moved or deleted meanwhile"
    return "cannot be read: " + (error.strerror or "unknown reason")
