"""Passages as they are indexed and searched."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final, Literal
from uuid import UUID, uuid5

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shared.search.fusion import ScorePart

ContentType = Literal["prose", "code_block", "table"]

SPLITTER: Final = 4
"""The version of splitting and of the texts by which passages are searched. `kho reindex` makes older passages again.

1 read HTML as a tree, and did not index the words of paths. 2 did not count the words of whole documents. 3 kept the
navigation of HTML, and had no metadata.
"""
_MAX_HEADING: Final = 300
_MEANINGFUL: Final = re.compile(r"[^\W\d_]{3}|[^\W\d_a-zA-Z]")
"""Three letters in a row, or a non-ASCII letter. Names such as `p0` or `2026-11` carry no meaning for a model."""
_NAMESPACE: Final = UUID("0c8a5c1e-6f0e-4a57-9d0c-5b1d0f7a3f52")


def cut_heading(heading: str) -> str:
    """Return a title or heading, cut if it is very long. Each passage below it has it."""
    return heading if len(heading) <= _MAX_HEADING else f"{heading[: _MAX_HEADING - 1]}…"


@dataclass(frozen=True, slots=True)
class DocumentRef:
    """The identity of a document: its tenant, its collection and its id."""

    tenant_id: str
    collection: str
    document_id: str

    @property
    def id(self) -> str:
        """A stable UUID of the document."""
        return str(uuid5(_NAMESPACE, "\0".join((self.tenant_id, self.collection, self.document_id))))

    @property
    def first_passage_id(self) -> str:
        """The id of the document's first passage."""
        return self.passage_id(0)

    def passage_id(self, ordinal: int) -> str:
        """Return a stable UUID of a position in the document, the same at every revision."""
        return str(uuid5(UUID(self.id), str(ordinal)))


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a document that can be found. `payload` is stored and returned unchanged."""

    document: DocumentRef
    ordinal: int
    text: str
    revision: int
    title: str = ""
    source: str = ""
    heading_path: tuple[str, ...] = ()
    content_type: ContentType = "prose"
    tags: tuple[str, ...] = ()
    payload: Mapping[str, Any] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """The id of the passage's position in its document."""
        return self.document.passage_id(self.ordinal)

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Passage:
        """Return the passage of a stored record."""
        fields = record | {name: tuple(record[name]) for name in ("heading_path", "tags")}
        return cls(**fields | {"document": DocumentRef(**record["document"])})

    @property
    def header_path(self) -> str:
        """The headings above the passage, as one line."""
        return " > ".join(self.heading_path)

    @property
    def headings(self) -> list[str]:
        """The distinct title and headings. Very long ones are cut, so that they cannot outweigh the text."""
        return list(map(cut_heading, dict.fromkeys(filter(None, (self.title, *self.heading_path)))))

    @property
    def searchable_text(self) -> str:
        """The text for keyword search, preceded by its path, title and headings."""
        path = [self.source] if "/" in self.source else []
        return "\n".join([*path, *self.headings, self.text])

    @property
    def embedded_text(self) -> str:
        """The text for embedding: the searchable text without a file name that carries no meaning."""
        headings = self.headings
        file = PurePosixPath(self.source)
        if headings and headings[0] == file.name and not _MEANINGFUL.search(file.stem):
            del headings[0]
        return "\n".join([*headings, self.text])


@dataclass(frozen=True, slots=True)
class SearchQuestion:
    """A search of some of a tenant's collections. `context` is the text the caller is working on."""

    text: str
    tenant_id: str
    collections: tuple[str, ...]
    top_k: int = 10
    context: str = ""
    tags: tuple[str, ...] = ()
    metadata: tuple[tuple[str, ...], ...] = ()
    """The values of each key of the metadata, of which one is required."""
    rerank: bool = True
    excluded_documents: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A passage that was found.

    Hits are ordered by `score` in 0-1. `similarity` is the cosine of the meanings, `overlap` the rarity-weighted share
    of the query's words in the passage. Both are in 0-1 and comparable between queries.
    """

    passage: Passage
    score: float
    similarity: float
    overlap: float
    parts: tuple[ScorePart, ...] = ()
