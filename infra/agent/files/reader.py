"""The reader of one machine: what ingestions and the command line see of its files."""

from __future__ import annotations

import hashlib
import platform
from dataclasses import dataclass
from typing import TYPE_CHECKING

from infra.agent.files.content import read
from infra.agent.files.errors import FileMissing, OutsideRoots, UnreadableFile
from infra.agent.files.folder_scan import read_failure, scan
from infra.agent.files.pdf import MAX_SECONDS
from shared.knowledge.errors import no_document, path_forbidden, unreadable
from shared.knowledge.models import NewKnowledgeDocument
from shared.rpc.strict_json import encodable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from infra.agent.files.content import FileContent
    from infra.agent.files.folder_scan import Scan
    from infra.agent.files.roots import RootedPath, Roots
    from shared.knowledge.models import DocumentFailure
    from shared.rpc.errors import KhoError


@dataclass(frozen=True, slots=True)
class ReadFile:
    """One file that was read; a PDF is unpacked when its text is asked for."""

    file: FileContent
    tree: str
    seconds: int

    @property
    def path(self) -> str:
        """The name that its document has."""
        return self.file.name

    @property
    def hash(self) -> str:
        """The hash of its content."""
        return self.file.hash

    def document(self) -> NewKnowledgeDocument | DocumentFailure:
        """What it says, or why it cannot be read."""
        try:
            return NewKnowledgeDocument(
                self.file.name, self.file.text(self.seconds), hash=self.file.hash, tree=self.tree
            )
        except UnreadableFile as refusal:
            return read_failure(self.file.name, refusal)


class FileSelection:
    """The files under a path, each read when it is asked for; or why there is nothing."""

    def __init__(self, found: Scan, tree: str, absent: KhoError | None, seconds: int) -> None:
        self._found = found
        self._seconds = seconds
        self.tree = tree
        self.is_folder = found.kind == "folder"
        self.absent = absent
        self.total = len(found.files) + len(found.failures)

    def files(self) -> Iterator[ReadFile | DocumentFailure]:
        """Each file, or why it is left out."""
        yield from self._found.failures
        for place in self._found.files:
            try:
                yield ReadFile(read(place), self.tree, self._seconds)
            except UnreadableFile as refusal:
                yield read_failure(place.name, refusal)

    def covers(self, path: str) -> bool:
        """Whether a file of this name would have been found, were it still there."""
        return self._found.covers(path)


class FileReader:
    """Reads files under `roots`; a PDF that is asked for alone is unpacked within `seconds`."""

    def __init__(self, roots: Roots, seconds: int = MAX_SECONDS) -> None:
        self._roots = roots
        self._seconds = seconds

    def find(self, path: str, *, recursive: bool) -> FileSelection:
        """What lies under `path`; a refusal in the caller's words where it may not be read."""
        try:
            found = scan(self._roots, path, recursive=recursive)
        except FileMissing as refusal:
            raise no_document(path, str(refusal)) from None
        except OutsideRoots:
            raise path_forbidden(path) from None
        except UnreadableFile as refusal:
            raise unreadable(encodable(path), str(refusal)) from None
        absent = no_document(path, "does not exist under the allowed roots") if found.kind == "absent" else None
        seconds = MAX_SECONDS if found.kind == "folder" else self._seconds
        return FileSelection(found, self._tree(found.place), absent, seconds)

    def _tree(self, place: RootedPath) -> str:
        # Of its root alone: what was read under others, or before there were any, is told from it.
        named = f"{platform.node()}\0{self._roots.outermost(place.path)}"
        return hashlib.sha256(named.encode("utf-8", "surrogateescape")).hexdigest()[:32]
