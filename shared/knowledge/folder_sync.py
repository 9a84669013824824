"""Synchronisation of a collection with the files under a path: add new and changed ones, remove missing ones.

Only a local server and the research agent read files, below their roots. A server's reader is registered here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from shared.knowledge.models import DocumentFailure, SkippedFile

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Sequence

    from shared.knowledge.models import FileNote, IngestionTally, NewKnowledgeDocument, StoredFile
    from shared.rpc.errors import KhoError


@dataclass(frozen=True, slots=True)
class InvalidFile(DocumentFailure):
    """A file that cannot be a document now. A document read from it earlier is removed."""


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file that was found, and the hash of its content. `document` parses it, or returns why it cannot be read."""

    path: str
    hash: str
    document: Callable[[], NewKnowledgeDocument | DocumentFailure | SkippedFile]


@dataclass(frozen=True, slots=True)
class FileListing:
    """The files below a path, read lazily, and the reasons why some are left out. `absent` if the path does not exist.

    `covers` tells if the listing would include a file of a name. `notes` are reported with any outcome.
    """

    tree: str
    is_folder: bool
    absent: KhoError | None
    total: int
    files: Iterable[FoundFile | DocumentFailure | SkippedFile]
    covers: Callable[[str], bool]
    notes: Sequence[FileNote] = ()


class FileSource(Protocol):
    """Reads files below allowed roots."""

    def find(self, path: str, *, recursive: bool) -> FileListing:
        """List the files below `path`. Raise a caller-facing error if it may not be read."""


class StoredFiles(Protocol):
    """The documents of a collection, as its files are compared with them."""

    def find(self, path: str) -> StoredFile | None:
        """Return the document under `path`, if there is one."""

    def stored(self) -> Iterable[StoredFile]:
        """Return every document of the collection."""


class SyncTarget(Protocol):
    """The changes of the collection that files are synchronised into: in this process or on a server."""

    tally: IngestionTally

    def skip(self, stored: StoredFile) -> None:
        """Count a document that is unchanged."""

    def leave_out(self, file: SkippedFile) -> None:
        """Count a file that holds no text. A document of its former content goes."""

    def fail(self, failure: DocumentFailure) -> None:
        """Record a file that cannot be read."""

    def add(self, new: NewKnowledgeDocument) -> None:
        """Add or replace a document."""

    def remove(self, paths: Sequence[str]) -> None:
        """Remove the documents under `paths`. Called once, after all additions."""


def sync_folder(
    documents: StoredFiles,
    target: SyncTarget,
    listing: FileListing,
    progress: Callable[[int, int, str], None] = lambda _number, _total, _path: None,
) -> list[str]:
    """Bring the collection up to date with the files. Return the paths whose files are missing.

    It can be interrupted between any two files and repeated: added files are then unchanged.
    """
    seen: set[str] = set()
    target.tally.notes += [each for each in listing.notes if each not in target.tally.notes]
    for number, file in enumerate(listing.files, start=1):
        progress(number, listing.total, file.path)
        seen.add(file.path)
        stored = documents.find(file.path)
        if isinstance(file, FoundFile):
            if stored and stored.hash == file.hash and stored.indexed and stored.tree == listing.tree:
                target.skip(stored)
                continue
            content = file.document()
        else:
            content = file
        if isinstance(content, DocumentFailure):
            target.fail(content)
        elif isinstance(content, SkippedFile):
            target.leave_out(content)
        else:
            target.add(content)
    missing = missing_paths(documents.stored(), listing, seen) if listing.is_folder or listing.absent else []
    target.remove(missing)
    return missing


def missing_paths(stored: Iterable[StoredFile], listing: FileListing, seen: Container[str] = ()) -> list[str]:
    """Return the paths of documents that came from the listed folder and whose files are no longer in it."""
    return [
        each.path
        for each in stored
        if each.tree == listing.tree and listing.covers(each.path) and each.path not in seen
    ]
