"""Data models of the knowledge base."""

import re
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, Field

from shared.rpc.field_messages import worded
from shared.rpc.names import normalize_name

MAX_TEXT_BYTES: Final = 4 << 20
MAX_UPLOAD_BYTES: Final = 4 << 20
MAX_PATH_BYTES: Final = 900

CollectionType = Literal["fundamental", "project-specific"]
Origin = Literal["file", "text"]
Outcome = Literal["added", "updated", "unchanged"]
JobStatus = Literal["queued", "running", "stalled", "done", "failed"]

MAX_NAME: Final = 64
_NAME_PATTERN: Final = r"[^\s,#\ufeff\x00-\x1f\x7f-\x9f]+"


def _name(value: str) -> str:
    if value and not re.fullmatch(_NAME_PATTERN, value):
        raise ValueError("holds a space, a comma, a '#' or a control character")
    return normalize_name(value)


Name = Annotated[
    str,
    Field(
        min_length=1,
        max_length=MAX_NAME,
        examples=["notes"],
        json_schema_extra={"pattern": worded(f"^{_NAME_PATTERN}$", "without spaces, commas, # and control characters")},
    ),
    AfterValidator(_name),
]
"""The name of a collection or a project. Lists of names are comma-separated, so a name contains no comma."""
Names = Annotated[str, Field(max_length=4096, examples=["notes, papers"])]
"""Collection names, separated by commas."""
Path = Annotated[str, Field(min_length=1, max_length=MAX_PATH_BYTES, examples=["docs/guide.md"])]


def parse_names(names: str | None) -> list[str]:
    """Return the distinct names in a comma-separated list."""
    return list(dict.fromkeys(filter(None, (normalize_name(each.strip()) for each in (names or "").split(",")))))


@dataclass(frozen=True, slots=True)
class RecordedSpace:
    """The part of an embedding space that a collection records. `prefix` holds both prefixes."""

    model: str
    dimensions: int
    prefix: str

    def __str__(self) -> str:
        return f"{self.model} ({self.dimensions} dimensions, prefix '{self.prefix}')"


@dataclass(frozen=True, slots=True)
class Collection:
    """A named set of documents that are searched together."""

    id: str
    name: str
    type: CollectionType
    space: RecordedSpace
    created_at: str


@dataclass(frozen=True, slots=True)
class StoredFile:
    """The state that a synchronization compares: `hash` is that of the file, `tree` the folder tree it came from."""

    path: str
    hash: str
    tree: str
    chunks: int
    indexed: bool


@dataclass(frozen=True, slots=True)
class StoredDocument(StoredFile):
    """The stored state of a document of a collection."""

    title: str
    bytes: int
    origin: Origin
    revision: int
    created_at: str
    updated_at: str


@dataclass(frozen=True, slots=True)
class NewKnowledgeDocument:
    """A document to ingest. `tree` names the folder tree it was read from, `hash` its content.

    `encoding` is that of its file, if it is not UTF-8.
    """

    path: str
    text: str
    hash: str = ""
    title: str = ""
    origin: Origin = "file"
    tree: str = ""
    encoding: str = ""


@dataclass(frozen=True, slots=True)
class UploadedFile:
    """A file that a caller has sent as it is."""

    path: str
    content: bytes
    hash: str
    title: str = ""
    tree: str = ""


@dataclass(frozen=True, slots=True)
class DocumentFailure:
    """A document that was not ingested, and the reason."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class SkippedFile:
    """A file of a kind that holds no text, such as `pictures`."""

    path: str
    kind: str


@dataclass(frozen=True, slots=True)
class FileNote:
    """A remark on a file that is not a failure, such as the encoding that was recognised."""

    path: str
    note: str


@dataclass(slots=True)
class IngestionTally:
    """The outcomes of an ingestion's documents so far."""

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    removed: int = 0
    chunks: int = 0
    pending: int = 0
    failed: list[DocumentFailure] = field(default_factory=list)
    unlisted: int = 0
    """The number of failures beyond those in `failed`."""
    skipped: dict[str, int] = field(default_factory=dict)
    """The number of files of each kind that holds no text."""
    notes: list[FileNote] = field(default_factory=list)

    def skip_kind(self, kind: str) -> None:
        """Count a file of a kind that holds no text."""
        self.skipped[kind] = self.skipped.get(kind, 0) + 1

    def tell_encoding(self, new: NewKnowledgeDocument) -> None:
        """Note the encoding of a document's file, unless it is UTF-8."""
        if new.encoding:
            self.notes.append(FileNote(new.path, f"read as {new.encoding}"))

    @property
    def failures(self) -> int:
        """The number of failed documents."""
        return len(self.failed) + self.unlisted

    @property
    def documents(self) -> int:
        """The number of documents processed."""
        return self.added + self.updated + self.unchanged + self.failures + sum(self.skipped.values())

    def outcomes(self) -> dict[str, Any]:
        """Return the fields of the tally that are reported."""
        names = ("added", "updated", "unchanged", "removed", "chunks", "pending", "failed", "skipped", "notes")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, slots=True)
class Project:
    """A project, its linked collections, and those its queries search by default."""

    name: str
    collections: list[str]
    defaults: list[str]
    created_at: str
    updated_at: str

    @property
    def searched(self) -> list[str]:
        """The collections searched by a query of this project that names none."""
        return self.defaults or self.collections


def is_short(path: str) -> bool:
    """Return True if `path` fits into a key of the table."""
    return len(path.encode("utf-8")) <= MAX_PATH_BYTES
