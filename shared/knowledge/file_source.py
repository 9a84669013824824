"""Interface through which an ingestion reads files. Only a local server reads files, below its roots."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from shared.knowledge.models import DocumentFailure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shared.knowledge.models import NewKnowledgeDocument
    from shared.rpc.errors import KhoError


@dataclass(frozen=True, slots=True)
class InvalidFile(DocumentFailure):
    """A file that cannot be a document now. A document read from it earlier is removed."""


class FoundFile(Protocol):
    """A file that was found but not parsed."""

    @property
    def path(self) -> str:
        """The path of its document."""

    @property
    def hash(self) -> str:
        """The hash of its content."""

    def document(self) -> NewKnowledgeDocument | DocumentFailure:
        """Parse the file. Return its document, or the reason it cannot be read."""


class FileListing(Protocol):
    """The files below a path, read lazily, or the error if the path is absent."""

    tree: str
    is_folder: bool
    absent: KhoError | None
    total: int

    def files(self) -> Iterator[FoundFile | DocumentFailure]:
        """Yield each file, or the reason it is left out."""

    def covers(self, path: str) -> bool:
        """Return True if the listing would include a file of this name."""


class FileSource(Protocol):
    """Reads files below allowed roots."""

    def find(self, path: str, *, recursive: bool) -> FileListing:
        """List the files below `path`. Raise a caller-facing error if it may not be read."""


_reader: list[FileSource] = []


def use_reader(reader: FileSource) -> None:
    """Register the reader of this process's ingestions."""
    _reader[:] = [reader]


def file_reader() -> FileSource | None:
    """Return the registered reader, if any."""
    return _reader[0] if _reader else None
