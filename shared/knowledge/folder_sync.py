"""Synchronisation of a collection with the files under a path: add new and changed ones, remove missing ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from shared.knowledge.models import DocumentFailure

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Sequence

    from shared.knowledge.file_source import FileListing
    from shared.knowledge.models import NewKnowledgeDocument


class StoredFile(Protocol):
    """A document of the collection, with the fields that a synchronisation compares."""

    @property
    def path(self) -> str:
        """The document's path."""

    @property
    def hash(self) -> str:
        """The hash of the file's content."""

    @property
    def tree(self) -> str:
        """The folder tree that the file was read from."""

    @property
    def chunks(self) -> int:
        """The number of passages."""

    @property
    def indexed(self) -> bool:
        """True if the index has the current revision."""


class SyncTarget(Protocol):
    """The collection that files are synchronised into: in this process or on a server."""

    def find(self, path: str) -> StoredFile | None:
        """Return the document under `path`, if there is one."""

    def stored(self) -> Iterable[StoredFile]:
        """Return every document of the collection."""

    def skip(self, stored: StoredFile) -> None:
        """Count a document that is unchanged."""

    def fail(self, failure: DocumentFailure) -> None:
        """Record a file that cannot be read."""

    def add(self, new: NewKnowledgeDocument) -> None:
        """Add or replace a document."""

    def remove(self, paths: Sequence[str]) -> None:
        """Remove the documents under `paths`. Called once, after all additions."""


class FolderSync:
    """One synchronisation. It can be interrupted between any two files and repeated: added files are then unchanged."""

    def __init__(
        self, target: SyncTarget, progress: Callable[[int, int, str], None] = lambda _number, _total, _path: None
    ) -> None:
        self._target = target
        self._progress = progress

    def run(self, listing: FileListing) -> list[str]:
        """Bring the collection up to date with the files. Return the paths whose files are missing."""
        target = self._target
        seen: set[str] = set()
        for number, file in enumerate(listing.files(), start=1):
            self._progress(number, listing.total, file.path)
            seen.add(file.path)
            if isinstance(file, DocumentFailure):
                target.fail(file)
                continue
            stored = target.find(file.path)
            if stored and stored.hash == file.hash and stored.indexed and stored.tree == listing.tree:
                target.skip(stored)
                continue
            new = file.document()
            if isinstance(new, DocumentFailure):
                target.fail(new)
            else:
                target.add(new)
        missing = missing_paths(target.stored(), listing, seen) if listing.is_folder or listing.absent else []
        target.remove(missing)
        return missing


def missing_paths(stored: Iterable[StoredFile], listing: FileListing, seen: Container[str] = ()) -> list[str]:
    """Return the paths of documents that came from the listed folder and whose files are no longer in it."""
    return [
        each.path
        for each in stored
        if each.tree == listing.tree and listing.covers(each.path) and each.path not in seen
    ]
