"""Searches of a tenant's collections. Hits of outdated passages are dropped."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from shared.background import submit
from shared.knowledge.errors import not_searchable, query_invalid
from shared.knowledge.index import knowledge_index
from shared.knowledge.passages import SearchQuestion
from shared.knowledge.refinement import QueryRefinement, RelevanceLabel, label_of, refine
from shared.knowledge.space import current_space
from shared.rpc.errors import Unavailable
from shared.rpc.whitespace import is_blank

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from concurrent.futures import Future

    from shared.knowledge.collections import CollectionStore
    from shared.knowledge.documents import CollectionDocuments
    from shared.knowledge.models import Collection
    from shared.knowledge.passages import DocumentRef, Passage, SearchHit

MAX_QUERY: Final = 2048
_EXTRA_HITS: Final = 5
"""Hits requested beyond those wanted: some may belong to documents that have changed since they were indexed."""
_HITS_FOR_REFINEMENT: Final = 10
"""Hits needed to tell if a query is too broad, even if fewer are wanted."""
_DECIMALS: Final = 4


@dataclass(frozen=True, slots=True)
class SearchResults:
    """The hits of a search, the searched collections, and the rating of the query."""

    hits: list[SearchHit]
    collections: list[str]
    refinement: QueryRefinement

    def score(self, hit: SearchHit) -> float:
        """Return the relevance of a passage in 0-1."""
        return round(min(1.0, max(0.0, hit.score)), _DECIMALS)

    def label(self, hit: SearchHit) -> RelevanceLabel:
        """Return the relevance label of a passage."""
        return label_of(self.score(hit))


class SearchService:
    """The searches of one tenant."""

    def __init__(
        self, tenant_id: str, collections: CollectionStore, documents: Callable[[Collection], CollectionDocuments]
    ) -> None:
        self._tenant_id = tenant_id
        self._collections = collections
        self._documents = documents

    def run(self, query: str, names: Sequence[str], top_k: int, context: str) -> SearchResults:
        """Return the best passages for `query` in the collections of these names, or in all."""
        _require_query(query)
        searched = {each.id: each for each in self._collections.select(names, current_space())}
        question = SearchQuestion(
            query, self._tenant_id, tuple(searched), max(top_k, _HITS_FOR_REFINEMENT) + _EXTRA_HITS, context
        )
        revision_checks: list[Future[dict[tuple[str, str], int]]] = []

        def check(passages: Iterable[Passage]) -> None:
            documents = {passage.document for passage in passages}
            revision_checks.append(submit(lambda: self._revisions(documents, searched)))

        try:
            candidates = knowledge_index().search(question, check)
        except Unavailable:
            raise not_searchable() from None
        revisions = revision_checks[0].result()
        current = [hit for hit in candidates if revisions.get(_location(hit.passage.document)) == hit.passage.revision]
        return SearchResults(
            current[:top_k],
            [each.name for each in searched.values()],
            refine(query, current[: max(top_k, _HITS_FOR_REFINEMENT)]),
        )

    def _revisions(
        self, documents: Iterable[DocumentRef], searched: dict[str, Collection]
    ) -> dict[tuple[str, str], int]:
        """Return the current revision of each document that still exists."""
        paths_by_collection: defaultdict[str, set[str]] = defaultdict(set)
        for collection_id, path in map(_location, documents):
            paths_by_collection[collection_id].add(path)
        return {
            (collection_id, path): revision
            for collection_id, paths in paths_by_collection.items()
            for path, revision in self._documents(searched[collection_id]).read_field("revision", paths).items()
        }


def _location(document: DocumentRef) -> tuple[str, str]:
    return document.collection, document.document_id


def _require_query(query: str) -> None:
    if is_blank(query):
        raise query_invalid("is empty")
    if len(query) > MAX_QUERY:
        raise query_invalid(f"has {len(query):,} characters")
