"""The folders under which files may be read, and no way out of them."""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from infra.agent.files.errors import FileInaccessible, FileMissing, OutsideRoots, UnreadableFile
from shared.rpc.strict_json import is_encodable

if TYPE_CHECKING:
    from collections.abc import Sequence

# A FIFO would keep an ordinary open waiting for its writer; a link put in place meanwhile must not be followed.
_OPENING: Final = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
_BY_FOLDER: Final = os.open in os.supports_dir_fd
_CHUNK: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class RootedPath:
    """A path without links, the root that it lies under, and the name it has for others."""

    root: Path
    path: Path
    name: str


class Roots:
    """The allowed folders."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self.folders = list(dict.fromkeys(folder.resolve() for folder in folders))
        outermost = [each for each in self.folders if not any(other in each.parents for other in self.folders)]
        self._labels = dict(zip(outermost, _labels(outermost), strict=True))

    def place(self, path: str | Path) -> RootedPath:
        """Where `path` leads, links followed; relative ones start from the first root."""
        place = self.resolve_path(path)
        try:
            place.path.stat()
        except (FileNotFoundError, NotADirectoryError):
            raise FileMissing("does not exist under the allowed roots") from None
        except OSError as error:
            raise _unresolved() if error.errno in (errno.ELOOP, errno.ENAMETOOLONG) else _inaccessible(error) from None
        return place

    def resolve_path(self, path: str | Path) -> RootedPath:
        """Where `path` would lead, whether anything is there or not."""
        if not os.fspath(path) or "\0" in os.fspath(path):
            raise FileMissing("is not a path")
        if not is_encodable(os.fspath(path)):
            raise UnreadableFile("has a name that is not UTF-8")
        try:
            real = (self.folders[0] / path).resolve()
        except (OSError, RuntimeError):
            raise _unresolved() from None
        root = max(
            (each for each in self.folders if _is_in(each, real)), key=lambda each: len(each.parts), default=None
        )
        if root is None:
            # Looked at before what exists, which is nobody's business out there.
            raise OutsideRoots("leads outside the allowed roots")
        return RootedPath(root, real, self.name(real))

    def name(self, path: Path) -> str:
        """What a path under the roots is called: from its outermost root on, which is named where there are several."""
        root = self.outermost(path)
        return PurePosixPath(self._labels[root], path.relative_to(root).as_posix()).as_posix()

    def outermost(self, path: Path) -> Path:
        """The root under which `path` is named: one inside another adds nothing to be read."""
        return next(root for root in self._labels if _is_in(root, path))


def _is_in(root: Path, path: Path) -> bool:
    return path == root or root in path.parents


def _labels(roots: Sequence[Path]) -> list[str]:
    """What names begin with: nothing for one root, else as much of each root's end as tells it from all others."""
    if len(roots) == 1:
        return [""]
    parts = [root.as_posix().strip("/").split("/") for root in roots]
    for depth in range(1, max(map(len, parts)) + 1):
        labels = ["/".join(each[-depth:]) + "/" for each in parts]
        # Nor may one lead into another, whose files a folder inside it would be taken for.
        if not any(labels[m].startswith(labels[n]) for m, n in permutations(range(len(labels)), 2)):
            break
    return labels


def read_bytes(place: RootedPath, limit: int) -> bytes:
    """The content of a regular file of at most `limit` bytes."""
    try:
        descriptor = _open(place)
    except OSError as error:
        raise _inaccessible(error) from None
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise UnreadableFile("is not a regular file")
        if status.st_size > limit:
            raise UnreadableFile(f"is larger than {limit >> 20} MiB")
        content = bytearray()
        try:
            while len(content) <= limit and (read := file.read(_CHUNK)):
                content += read
        except OSError as error:
            raise _inaccessible(error) from None
    if len(content) > limit:
        raise UnreadableFile(f"is larger than {limit >> 20} MiB")
    return bytes(content)


def _open(place: RootedPath) -> int:
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


def _unresolved() -> UnreadableFile:
    return UnreadableFile("cannot be resolved: a loop of links, or a name that is too long")


def _inaccessible(error: OSError) -> FileInaccessible:
    if error.errno in (errno.EACCES, errno.EPERM):
        return FileInaccessible("may not be read by this user")
    if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
        return FileInaccessible("was moved or deleted meanwhile")
    return FileInaccessible("cannot be read: " + (error.strerror or "unknown reason"))
