"""The reader of one machine: what ingestions and the command line see of its files."""

from __future__ import annotations

import hashlib
import platform
from dataclasses import dataclass
from typing import TYPE_CHECKING

from infra.reading.failures import Absent, OutsideRoots, Unreadable
from infra.reading.files import read
from infra.reading.folders import scan
from shared.knowledge.models import Failure, NewDocument
from shared.knowledge.refusals import no_document, path_forbidden, unreadable
from shared.rpc.text import encodable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from infra.reading.files import File
    from infra.reading.folders import Scan
    from infra.reading.roots import Roots


@dataclass(frozen=True, slots=True)
class ReadFile:
    """One file that was read; a PDF is unpacked when its text is asked for."""

    file: File
    tree: str

    @property
    def path(self) -> str:
        """The name that its document has."""
        return self.file.name

    @property
    def hash(self) -> str:
        """The hash of its content."""
        return self.file.hash

    def document(self) -> NewDocument | Failure:
        """What it says, or why it cannot be read."""
        try:
            return NewDocument(self.file.name, self.file.text(), hash=self.file.hash, tree=self.tree)
        except Unreadable as refusal:
            return Failure(self.file.name, str(refusal))


class Files:
    """The files under a path, each read when it is asked for."""

    def __init__(self, found: Scan, tree: str) -> None:
        self._found = found
        self.tree = tree
        self.is_folder = found.folder is not None
        self.total = len(found.files) + len(found.failures)

    def files(self) -> Iterator[ReadFile | Failure]:
        """Each file, or why it is left out."""
        for failure in self._found.failures:
            yield Failure(failure.path, failure.reason)
        for place in self._found.files:
            try:
                yield ReadFile(read(place), self.tree)
            except Unreadable as refusal:
                yield Failure(place.name, str(refusal))

    def covers(self, path: str) -> bool:
        """Whether a file of this name would have been found, were it still there."""
        return self._found.covers(path)


class FileReader:
    """Reads files under `roots`."""

    def __init__(self, roots: Roots) -> None:
        self._roots = roots
        named = "\0".join([platform.node(), *(str(folder) for folder in roots.folders)])
        self._tree = hashlib.sha256(named.encode("utf-8", "surrogateescape")).hexdigest()[:32]

    def find(self, path: str, *, recursive: bool) -> Files:
        """What lies under `path`; a refusal in the caller's words where it may not be read or is not there."""
        try:
            return Files(scan(self._roots, path, recursive=recursive), self._tree)
        except Absent as refusal:
            raise no_document(path, str(refusal)) from None
        except OutsideRoots:
            raise path_forbidden(path) from None
        except Unreadable as refusal:
            raise unreadable(encodable(path), str(refusal)) from None
