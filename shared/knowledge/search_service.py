"""Searching a tenant's collections: the index proposes, the documents as they are now decide."""

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

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from concurrent.futures import Future

    from shared.knowledge.collections import CollectionStore
    from shared.knowledge.documents import CollectionDocuments
    from shared.knowledge.models import Collection
    from shared.knowledge.passages import DocumentRef, Passage, SearchHit

MAX_QUERY: Final = 2048
_SPARE: Final = 5
"""How many more are asked for than are wanted: some may be of documents that have changed meanwhile."""
_REFINED_BY: Final = 10
"""So many hits tell whether a query is too broad, however few of them are wanted."""
_DECIMALS: Final = 4


@dataclass(frozen=True, slots=True)
class SearchResults:
    """What a search found, where, and how the query could be better."""

    hits: list[SearchHit]
    collections: list[str]
    refinement: QueryRefinement

    def score(self, hit: SearchHit) -> float:
        """How relevant a passage is, in 0-1."""
        return round(min(1.0, max(0.0, hit.score)), _DECIMALS)

    def label(self, hit: SearchHit) -> RelevanceLabel:
        """How relevant a passage is, in words."""
        return label_of(self.score(hit))


class SearchService:
    """Searches of one tenant."""

    def __init__(
        self, tenant_id: str, collections: CollectionStore, documents: Callable[[Collection], CollectionDocuments]
    ) -> None:
        self._tenant_id = tenant_id
        self._collections = collections
        self._documents = documents

    def run(self, query: str, names: Sequence[str], top_k: int, context: str) -> SearchResults:
        """The best passages for `query` in the collections of these names, or in all."""
        _require_query(query)
        chosen = {each.id: each for each in self._collections.searched(names, current_space())}
        question = SearchQuestion(query, self._tenant_id, tuple(chosen), max(top_k, _REFINED_BY) + _SPARE, context)
        checking: list[Future[dict[tuple[str, str], int]]] = []

        def check(passages: Iterable[Passage]) -> None:
            documents = {passage.document for passage in passages}
            checking.append(submit(lambda: self._revisions(documents, chosen)))

        try:
            proposed = knowledge_index().search(question, check)
        except Unavailable:
            raise not_searchable() from None
        revisions = checking[0].result()
        current = [hit for hit in proposed if revisions.get(_place(hit.passage.document)) == hit.passage.revision]
        return SearchResults(
            current[:top_k], [each.name for each in chosen.values()], refine(query, current[: max(top_k, _REFINED_BY)])
        )

    def _revisions(self, documents: Iterable[DocumentRef], chosen: dict[str, Collection]) -> dict[tuple[str, str], int]:
        """At which revision documents are now, those that there still are."""
        asked: defaultdict[str, set[str]] = defaultdict(set)
        for collection_id, path in map(_place, documents):
            asked[collection_id].add(path)
        return {
            (collection_id, path): revision
            for collection_id, paths in asked.items()
            for path, revision in self._documents(chosen[collection_id]).fields_of("revision", paths).items()
        }


def _place(document: DocumentRef) -> tuple[str, str]:
    return document.collection, document.document_id


def _require_query(query: str) -> None:
    if not query.strip():
        raise query_invalid("is empty")
    if len(query) > MAX_QUERY:
        raise query_invalid(f"has {len(query):,} characters")
