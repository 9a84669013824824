"""The seam through which an ingestion reads files where it may: on one machine, under its roots."""

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
    """A file that can be no document as it is now: what was brought in of it before is so no more."""


class FoundFile(Protocol):
    """One file, found but not unpacked."""

    @property
    def path(self) -> str:
        """The name that its document has."""

    @property
    def hash(self) -> str:
        """The hash of its content."""

    def document(self) -> NewKnowledgeDocument | DocumentFailure:
        """What it says, or why it cannot be read."""


class FileListing(Protocol):
    """The files under a path, or its absence; whatever is read of them is read when it is asked for."""

    tree: str
    is_folder: bool
    absent: KhoError | None
    total: int

    def files(self) -> Iterator[FoundFile | DocumentFailure]:
        """Each file, or why it is left out."""

    def covers(self, path: str) -> bool:
        """Whether a file of this name would have been found, were it still there."""


class FileSource(Protocol):
    """Reads files under allowed roots."""

    def find(self, path: str, *, recursive: bool) -> FileListing:
        """What lies under `path`; a refusal in the caller's words where it may not be read."""


_reader: list[FileSource] = []


def use_reader(reader: FileSource) -> None:
    """Let ingestions read files by `reader`, as one machine does."""
    _reader[:] = [reader]


def file_reader() -> FileSource | None:
    """What reads files here, if anything may."""
    return _reader[0] if _reader else None
