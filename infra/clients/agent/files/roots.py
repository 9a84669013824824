"""The allowed root folders, and safe opening of files under them."""

from __future__ import annotations

import contextlib
import errno
import os
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from infra.clients.agent.files.errors import FileInaccessible, FileMissing, OutsideRoots, UnreadableFile
from shared.platform.regular_file import NotRegularFileError, open_regular_file
from shared.rpc.strict_json import is_encodable

if TYPE_CHECKING:
    import io
    from collections.abc import Sequence

_HAS_DIR_FD: Final = os.open in os.supports_dir_fd
_CHUNK: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class RootedPath:
    """A resolved path, its root, and its name in documents and messages."""

    root: Path
    path: Path
    name: str


class Roots:
    """The allowed root folders."""

    def __init__(self, folders: Sequence[Path], label: str = "") -> None:
        self.folders = list(dict.fromkeys(folder.resolve() for folder in folders))
        outermost = [each for each in self.folders if not any(other in each.parents for other in self.folders)]
        self._labels = dict(zip(outermost, [label] if label else _labels(outermost), strict=True))

    @classmethod
    def around(cls, path: str) -> Roots:
        """Return the root of a path that a person has typed: the working folder, or for a path outside of it the path's
        own folder, whose name begins the names of its documents.
        """
        working = cls([Path()])
        if not path or "\0" in path:
            return working
        with contextlib.suppress(OSError, RuntimeError):
            place = Path(path).resolve()
            if not _is_in(working.folders[0], place):
                folder = place if place.is_dir() else place.parent
                return cls([folder], label=f"{folder.name}/")
        return working

    def locate(self, path: str | Path) -> RootedPath:
        """Resolve `path`, which must exist. Relative paths start from the first root."""
        location = self.resolve_path(path)
        try:
            location.path.stat()
        except (FileNotFoundError, NotADirectoryError):
            raise FileMissing("does not exist under the allowed roots") from None
        except OSError as error:
            raise _unresolved() if error.errno in (errno.ELOOP, errno.ENAMETOOLONG) else _inaccessible(error) from None
        return location

    def resolve_path(self, path: str | Path) -> RootedPath:
        """Resolve `path`, which need not exist."""
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
            # Checked before existence: the error must not reveal which files exist outside the roots.
            raise OutsideRoots("leads outside the allowed roots")
        return RootedPath(root, real, self.name(real))

    def name(self, path: Path) -> str:
        """Return the path relative to its outermost root, with the root's label if there are several roots."""
        root = self.outermost(path)
        return PurePosixPath(self._labels[root], path.relative_to(root).as_posix()).as_posix()

    def outermost(self, path: Path) -> Path:
        """Return the outermost root that contains `path`."""
        return next(root for root in self._labels if _is_in(root, path))


def _is_in(root: Path, path: Path) -> bool:
    return path == root or root in path.parents


def _labels(roots: Sequence[Path]) -> list[str]:
    """Return a unique label for each root: empty for a single root, else the shortest distinct ends of their paths."""
    if len(roots) == 1:
        return [""]
    parts = [root.as_posix().strip("/").split("/") for root in roots]
    for depth in range(1, max(map(len, parts)) + 1):
        labels = ["/".join(each[-depth:]) + "/" for each in parts]
        # A label must not be a prefix of another: a subfolder's files would have the other root's names.
        if not any(labels[m].startswith(labels[n]) for m, n in permutations(range(len(labels)), 2)):
            break
    return labels


def read_bytes(location: RootedPath, limit: int) -> bytes:
    """Read a regular file of at most `limit` bytes."""
    try:
        file = _open(location)
    except NotRegularFileError:
        raise UnreadableFile("is not a regular file") from None
    except OSError as error:
        raise _inaccessible(error) from None
    with file:
        if os.fstat(file.fileno()).st_size > limit:
            raise UnreadableFile(f"is larger than {limit >> 20} MiB")
        content = bytearray()
        try:
            while len(content) <= limit and (chunk := file.read(_CHUNK)):
                content += chunk
        except OSError as error:
            raise _inaccessible(error) from None
    if len(content) > limit:
        raise UnreadableFile(f"is larger than {limit >> 20} MiB")
    return bytes(content)


def _open(location: RootedPath) -> io.FileIO:
    """Open the file folder by folder from its root, so that a link created meanwhile cannot lead out of the root."""
    if not _HAS_DIR_FD:
        return open_regular_file(location.path)
    *folders, name = location.path.relative_to(location.root).parts or (".",)
    parent = os.open(location.root, os.O_RDONLY | os.O_DIRECTORY)
    for folder in folders:
        try:
            child = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
        finally:
            os.close(parent)
        parent = child
    try:
        return open_regular_file(name, dir_fd=parent)
    finally:
        os.close(parent)


def _unresolved() -> UnreadableFile:
    return UnreadableFile("cannot be resolved: a loop of links, or a name that is too long")


def _inaccessible(error: OSError) -> FileInaccessible:
    if error.errno in (errno.EACCES, errno.EPERM):
        return FileInaccessible("may not be read by this user")
    if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
        return FileInaccessible("was moved or deleted meanwhile")
    return FileInaccessible("cannot be read: " + (error.strerror or "unknown reason"))
