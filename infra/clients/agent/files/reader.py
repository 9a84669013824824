"""The file reader for ingestions and the command line."""

from __future__ import annotations

import hashlib
import platform
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from infra.clients.agent.files.errors import FileMissing, OutsideRoots, UnreadableFile
from infra.clients.agent.files.folder_scan import read_failure, scan
from infra.clients.agent.files.roots import read_bytes
from shared.knowledge.errors import no_document, path_forbidden, unreadable
from shared.knowledge.file_kinds import skipped_kind
from shared.knowledge.file_text import document_of
from shared.knowledge.folder_sync import FileListing, FoundFile
from shared.knowledge.models import SkippedFile
from shared.knowledge.pdf import MAX_SECONDS
from shared.rpc.strict_json import encodable
from shared.search.splitting import format_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from infra.clients.agent.files.folder_scan import Scan
    from infra.clients.agent.files.roots import RootedPath, Roots
    from shared.knowledge.models import DocumentFailure, NewKnowledgeDocument


MAX_TEXT_BYTES: Final = 4 << 20
_MAX_PDF_BYTES: Final = 32 << 20


@dataclass(frozen=True, slots=True)
class ReadFile:
    """A snapshot of one file. Its text is extracted on demand, that of a PDF within `seconds`."""

    path: str
    content: bytes
    hash: str
    tree: str
    seconds: int

    def document(self) -> NewKnowledgeDocument | DocumentFailure | SkippedFile:
        """Extract the text, or return the reason why that fails."""
        return document_of(self.path, self.content, hash_=self.hash, tree=self.tree, seconds=self.seconds)


def read(location: RootedPath, tree: str = "", seconds: int = MAX_SECONDS) -> ReadFile:
    """Read a file. Raise `UnreadableFile` if it is too large or not a regular file."""
    is_pdf = format_of(location.name) == "pages"
    content = read_bytes(location, _MAX_PDF_BYTES if is_pdf else MAX_TEXT_BYTES)
    return ReadFile(location.name, content, hashlib.sha256(content).hexdigest(), tree, seconds)


def _files(scanned: Scan, tree: str, seconds: int) -> Iterator[FoundFile | DocumentFailure | SkippedFile]:
    """Yield each file, or the reason why it is left out."""
    yield from scanned.failures
    for path in scanned.files:
        if kind := skipped_kind(path.name):
            yield SkippedFile(path.name, kind)
            continue
        try:
            file = read(path, tree, seconds)
        except UnreadableFile as error:
            yield read_failure(path.name, error)
        else:
            yield FoundFile(file.path, file.hash, file.document)


class FileReader:
    """The reader of files under `roots`. A PDF that is requested by itself is extracted within `seconds`."""

    def __init__(self, roots: Roots, seconds: int = MAX_SECONDS) -> None:
        self._roots = roots
        self._seconds = seconds

    def find(self, path: str, *, recursive: bool) -> FileListing:
        """List the files under `path`. Raise `KhoError` if it may not be read."""
        try:
            scanned = scan(self._roots, path, recursive=recursive)
        except FileMissing as error:
            raise no_document(path, str(error)) from None
        except OutsideRoots:
            raise path_forbidden(path) from None
        except UnreadableFile as error:
            raise unreadable(encodable(path), str(error)) from None
        absent = no_document(path, "does not exist under the allowed roots") if scanned.kind == "absent" else None
        seconds = MAX_SECONDS if scanned.kind == "folder" else self._seconds
        total = len(scanned.files) + len(scanned.failures)
        tree = self._tree(scanned.location)
        files = _files(scanned, tree, seconds)
        return FileListing(tree, scanned.kind == "folder", absent, total, files, scanned.covers, scanned.notes)

    def _tree(self, location: RootedPath) -> str:
        # The root identifies the tree, so that documents of other roots are not taken for missing files of this one.
        identity = f"{platform.node()}\0{self._roots.outermost(location.path)}"
        return hashlib.sha256(identity.encode("utf-8", "surrogateescape")).hexdigest()[:32]
