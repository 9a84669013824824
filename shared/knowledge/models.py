"""What the knowledge base is made of, as it is stored and shown."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field

MAX_TEXT_BYTES: Final = 4 << 20
MAX_PATH_BYTES: Final = 900

CollectionType = Literal["fundamental", "project-specific"]
Origin = Literal["file", "text"]
Outcome = Literal["added", "updated", "unchanged"]
JobStatus = Literal["queued", "running", "done", "failed"]

MAX_NAME: Final = 64
_NAMED: Final = r"[^\s,#\x00-\x1f\x7f-\x9f]+"


def _name(value: str) -> str:
    if value and not re.fullmatch(_NAMED, value):
        raise ValueError("holds a space, a comma, a '#' or a control character")
    return value


Name = Annotated[
    str,
    Field(min_length=1, max_length=MAX_NAME, examples=["notes"], json_schema_extra={"pattern": f"^{_NAMED}$"}),
    AfterValidator(_name),
]
"""What a collection or a project is called: no comma, for lists are parted by them."""
Path = Annotated[str, Field(min_length=1, max_length=MAX_PATH_BYTES, examples=["docs/guide.md"])]


@dataclass(frozen=True, slots=True)
class EmbeddingSpace:
    """Which vectors can be compared: those of one model, its dimensions, and what it is told of a text's role."""

    model: str
    dimensions: int
    prefix: str

    def __str__(self) -> str:
        return f"{self.model} ({self.dimensions} dimensions, prefix '{self.prefix}')"


@dataclass(frozen=True, slots=True)
class Collection:
    """A named set of documents, searched together."""

    id: str
    name: str
    type: CollectionType
    space: EmbeddingSpace
    created_at: str


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """One document of a collection, as it is now."""

    path: str
    title: str
    hash: str
    chunks: int
    bytes: int
    origin: Origin
    tree: str
    revision: int
    indexed: bool
    created_at: str
    updated_at: str


@dataclass(frozen=True, slots=True)
class NewKnowledgeDocument:
    """A document to bring in; `tree` names the folder tree that it was read from, `hash` its content."""

    path: str
    text: str
    hash: str = ""
    title: str = ""
    origin: Origin = "file"
    tree: str = ""


@dataclass(frozen=True, slots=True)
class DocumentFailure:
    """One document that is not in, and why."""

    path: str
    reason: str


@dataclass(slots=True)
class IngestionTally:
    """What has become of the documents of an ingestion so far."""

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    removed: int = 0
    chunks: int = 0
    pending: int = 0
    failed: list[DocumentFailure] = field(default_factory=list)
    unlisted: int = 0
    """How many failed beside those."""

    @property
    def failures(self) -> int:
        """How many failed."""
        return len(self.failed) + self.unlisted

    @property
    def documents(self) -> int:
        """How many were seen to."""
        return self.added + self.updated + self.unchanged + self.failures


@dataclass(frozen=True, slots=True)
class Project:
    """A project, the collections it is linked to, and those that its queries search by default."""

    name: str
    collections: list[str]
    defaults: list[str]
    created_at: str
    updated_at: str

    @property
    def searched(self) -> list[str]:
        """What a query of this project searches where it names nothing."""
        return self.defaults or self.collections


def is_short(path: str) -> bool:
    """Whether there may be a document under `path`: a longer one is no key of the table."""
    return len(path.encode("utf-8")) <= MAX_PATH_BYTES
