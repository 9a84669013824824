"""Results of the methods of research-agent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from shared.knowledge.models import CollectionType, DocumentFailure, JobStatus, Project, StoredDocument
from shared.knowledge.refinement import QueryRefinement, RelevanceLabel


@dataclass(frozen=True, slots=True)
class IngestionProgress:
    """The progress of an ingestion: the documents processed out of `total`, and their outcomes."""

    job_id: str
    status: JobStatus
    collection: str
    message: str
    total: int
    processed: int
    added: int
    updated: int
    unchanged: int
    removed: int
    chunks: int
    pending: int
    failed: list[DocumentFailure]
    created_at: str
    updated_at: str


CollectionAction = Literal["create", "list", "delete", "info"]


@dataclass(frozen=True, slots=True)
class CollectionInfo:
    """A collection, its size, and the embedding space of its passages."""

    name: str
    type: CollectionType
    documents: int
    chunks: int
    model: str
    dimensions: int
    created_at: str
    projects: list[str]


@dataclass(frozen=True, slots=True)
class CollectionsResult:
    """The result of an action: the collection or all collections, and the documents of a described collection."""

    status: Literal["success"]
    action: CollectionAction
    message: str
    collection: CollectionInfo | None = None
    collections: list[CollectionInfo] | None = None
    documents: list[StoredDocument] | None = None
    next_cursor: str | None = None


ProjectAction = Literal["create", "link", "unlink", "set-defaults", "list", "info"]


@dataclass(frozen=True, slots=True)
class ProjectsResult:
    """The result of an action: the changed project or all projects."""

    status: Literal["success"]
    action: ProjectAction
    message: str
    project: Project | None = None
    projects: list[Project] | None = None


@dataclass(frozen=True, slots=True)
class ResultMetadata:
    """A passage's position in its document, and its type."""

    document_title: str
    content_type: Literal["prose", "code_block", "table"]
    chunk_sequence_id: int


@dataclass(frozen=True, slots=True)
class SearchResult:
    """A found passage."""

    content: str
    relevance_score: float
    relevance_label: RelevanceLabel
    source_document: str
    header_path: str
    metadata: ResultMetadata


@dataclass(frozen=True, slots=True)
class QueryResults:
    """Passages, best first, and a rating of the query."""

    status: Literal["success"]
    results: list[SearchResult]
    query_refinement: QueryRefinement
