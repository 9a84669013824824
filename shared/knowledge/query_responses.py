"""Passages and search results as research-agent returns them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from shared.knowledge.models import StoredDocument
from shared.knowledge.refinement import QueryRefinement, RelevanceLabel
from shared.search.fusion import ScorePart
from shared.search.passages import ContentType

if TYPE_CHECKING:
    from shared.search.passages import Passage


@dataclass(frozen=True, slots=True)
class IndexedPassage:
    """A passage of a document as it is searched; `chunk_sequence_id` is its position, from 1."""

    chunk_sequence_id: int
    content: str
    header_path: str
    content_type: ContentType

    @classmethod
    def of(cls, passage: Passage) -> IndexedPassage:
        """Return the response of an indexed passage."""
        return cls(passage.ordinal + 1, passage.text, passage.header_path, passage.content_type)


@dataclass(frozen=True, slots=True)
class PassagePage:
    """A document and some of its passages, in order; `next_cursor` is set if more follow."""

    document: StoredDocument
    passages: list[IndexedPassage]
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True)
class ResultMetadata:
    """A passage's position in its document, and its type."""

    document_title: str
    content_type: ContentType
    chunk_sequence_id: int


@dataclass(frozen=True, slots=True)
class SearchResult:
    """A found passage; if that was requested, with its collection and the parts of its score."""

    content: str
    relevance_score: float
    relevance_label: RelevanceLabel
    source_document: str
    header_path: str
    metadata: ResultMetadata
    collection: str | None = None
    score_parts: list[ScorePart] | None = None


@dataclass(frozen=True, slots=True)
class QueryResults:
    """Passages, best first, and a rating of the query."""

    status: Literal["success"]
    results: list[SearchResult]
    query_refinement: QueryRefinement
