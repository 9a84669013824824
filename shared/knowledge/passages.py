"""What is indexed, and what a search gives back."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final, Literal
from uuid import UUID, uuid5

if TYPE_CHECKING:
    from collections.abc import Mapping

ContentType = Literal["prose", "code_block", "table"]

_HEADING: Final = 300
_WORD: Final = re.compile(r"[^\W\d_]{3}|[^\W\d_a-zA-Z]")
"""Three letters in a row, or one that is not of ASCII; `p0` or `2026-11` tells a model nothing."""
_IDS: Final = UUID("0c8a5c1e-6f0e-4a57-9d0c-5b1d0f7a3f52")


@dataclass(frozen=True, slots=True)
class DocumentRef:
    """Whose document, in which collection, under which id."""

    tenant_id: str
    collection: str
    document_id: str

    @property
    def id(self) -> str:
        """The same for the same document, whoever asks and whenever."""
        return str(uuid5(_IDS, "\0".join((self.tenant_id, self.collection, self.document_id))))


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a document that can be found; `payload` is kept beside it and given back as it came."""

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
        """The same for the same place in the same document, at every revision."""
        return str(uuid5(UUID(self.document.id), str(self.ordinal)))

    def record(self) -> dict[str, Any]:
        """This passage as the store keeps it."""
        return asdict(self)

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Passage:
        """The passage that the store has kept."""
        kept = record | {name: tuple(record[name]) for name in ("heading_path", "tags")}
        return cls(**kept | {"document": DocumentRef(**record["document"])})

    @property
    def above(self) -> list[str]:
        """Its title and headings, each once, and of a very long one the beginning: it is not to hide the text."""
        headings = dict.fromkeys(filter(None, (self.title, *self.heading_path)))
        return [each if len(each) <= _HEADING else f"{each[: _HEADING - 1]}…" for each in headings]

    @property
    def searchable(self) -> str:
        """What it is found by: its text under its title and headings."""
        return "\n".join([*self.above, self.text])

    @property
    def meant(self) -> str:
        """What its vectors are made of: the same, without the name of a file that says nothing of what is in it."""
        above = self.above
        if above and above[0] == PurePosixPath(self.source).name and not _WORD.search(PurePosixPath(self.source).stem):
            del above[0]
        return "\n".join([*above, self.text])


@dataclass(frozen=True, slots=True)
class SearchQuestion:
    """What a tenant looks for, in which of its collections; `context` is what it is working on meanwhile."""

    text: str
    tenant_id: str
    collections: tuple[str, ...]
    top_k: int = 10
    context: str = ""
    tags: tuple[str, ...] = ()
    rerank: bool = True
    without: tuple[str, ...] = ()
    """Documents that are passed over."""


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A passage that was found.

    `score` is what hits are ordered by, in 0-1. `similarity` is the cosine of the meanings, `overlap` the share of
    the query's words, weighed by their rarity, that the passage holds: both in 0-1, and comparable between queries.
    """

    passage: Passage
    score: float
    similarity: float
    overlap: float
