"""Searches of a tenant's collections. Hits of outdated passages are dropped."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from shared.knowledge.documents import CollectionDocuments
from shared.knowledge.errors import not_searchable, query_invalid
from shared.knowledge.query_responses import QueryResults, ResultMetadata, SearchResult
from shared.knowledge.recorded_space import recorded_space
from shared.knowledge.refinement import label_of, refine
from shared.platform.background import submit
from shared.rpc.errors import Unavailable
from shared.rpc.whitespace import is_blank
from shared.search.fusion import ScorePart
from shared.search.index import knowledge_index
from shared.search.passages import SearchQuestion
from shared.search.tokenizer import has_content_word

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from shared.knowledge.collections import CollectionStore
    from shared.knowledge.models import Collection
    from shared.search.passages import DocumentRef, SearchHit

MAX_QUERY: Final = 2048
_EXTRA_HITS: Final = 5
"""Hits requested beyond those wanted: some may belong to documents that have changed since they were indexed."""
_HITS_FOR_REFINEMENT: Final = 10
"""Hits needed to tell if a query is too broad, even if fewer are wanted."""
_DECIMALS: Final = 4


def search(  # noqa: PLR0913 - each is a part of the search
    query: str, collections: CollectionStore, names: Sequence[str], *, top_k: int, context: str, explain: bool = False
) -> tuple[QueryResults, list[str]]:
    """Return the best passages for `query` in the collections of these names, or in all; and the searched names.

    With `explain`, the results have their collections and the parts of their scores.
    """
    if is_blank(query):
        raise query_invalid("is empty")
    if len(query) > MAX_QUERY:
        raise query_invalid(f"has {len(query):,} characters")
    index = knowledge_index()
    embedding = index.embed(query) if has_content_word(query) else None  # takes longer than reading the collections
    searched = {each.id: each for each in collections.select(names, recorded_space())}
    rated = max(top_k, _HITS_FOR_REFINEMENT)
    question = SearchQuestion(query, collections.tenant_id, tuple(searched), rated + _EXTRA_HITS, context)
    try:
        candidates = index.candidates(question, embedding)
        ids = {passage.document for passage in candidates.passages.values()}
        check = submit(lambda: current_revisions(collections, searched, ids))  # while the candidates are ranked
        hits = index.rank(candidates).hits
    except Unavailable:
        raise not_searchable() from None
    revisions = check.result()
    current = [hit for hit in hits if revisions.get(hit.passage.document) == hit.passage.revision]
    results = [_result(hit, searched if explain else None) for hit in current[:top_k]]
    return QueryResults("success", results, refine(query, current[:rated])), [each.name for each in searched.values()]


def current_revisions(
    collections: CollectionStore, searched: Mapping[str, Collection], found: Iterable[DocumentRef]
) -> dict[DocumentRef, int]:
    """Return the revision of each document of the `searched` collections, which are given by id, that still exists."""
    by_collection: defaultdict[str, dict[str, DocumentRef]] = defaultdict(dict)
    for document in found:
        by_collection[document.collection][document.document_id] = document
    revisions: dict[DocumentRef, int] = {}
    for collection_id, by_path in by_collection.items():
        collection, index = searched[collection_id], knowledge_index()
        stored = CollectionDocuments(collections.table, collections.tenant_id, collection, index)
        revisions |= {by_path[path]: each for path, each in stored.read_field("revision", by_path).items()}
    return revisions


def _result(hit: SearchHit, explained: Mapping[str, Collection] | None) -> SearchResult:
    """Return the result of a hit, with its collection and the parts of its score if there are `explained` ones."""
    passage = hit.passage
    score = round(min(1.0, max(0.0, hit.score)), _DECIMALS)
    metadata = ResultMetadata(passage.title, passage.content_type, passage.ordinal + 1)
    result = SearchResult(passage.text, score, label_of(score), passage.source, passage.header_path, metadata)
    if explained is None:
        return result
    parts = [ScorePart(each.name, round(each.value, _DECIMALS), round(each.weight, _DECIMALS)) for each in hit.parts]
    return replace(result, collection=explained[passage.document.collection].name, score_parts=parts)
