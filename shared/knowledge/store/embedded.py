"""Qdrant's engine in this process, with its data in a folder that belongs to one process at a time."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from qdrant_edge import (
    CountRequest,
    Distance,
    EdgeConfig,
    EdgeShard,
    EdgeSparseVectorParams,
    EdgeVectorParams,
    FieldCondition,
    Filter,
    HasIdCondition,
    HnswIndexConfig,
    IdfParams,
    KeywordIndexParams,
    MatchAny,
    MatchValue,
    Memory,
    Modifier,
    MultiVectorComparator,
    MultiVectorConfig,
    PayloadSchemaType,
    PayloadSelector,
    Query,
    QueryBatchRequest,
    QueryRequest,
    RangeFloat,
    ScrollRequest,
    SearchParams,
    SparseVector,
    UpdateOperation,
    VectorStorageDatatype,
)
from qdrant_edge import Point as EdgePoint

from shared.config import ConfigurationError
from shared.knowledge.bm25 import SparseTerms
from shared.knowledge.cpu_count import cpu_count
from shared.knowledge.embedding import RemoteText
from shared.knowledge.store import DOCUMENT_FIELDS, KEYWORDS, MEANING, PARTS, TERMS, Scope, document_of
from shared.knowledge.store.readahead import read_ahead

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from shared.knowledge.embedding import Vector
    from shared.knowledge.embedding.spaces import Space
    from shared.knowledge.store import Point, VectorQuery

_GRAPH_LINKS: Final = 16
_PAGE: Final = 1_000
_OPTIMIZE_AFTER: Final = 5_000
_SEARCH_THREADS: Final = max(1, cpu_count() // 2)
"""Search threads keep their cores busy for a while after a search. The other cores embed questions."""


class FolderLocked(Exception):
    """Another process has the index of this folder open."""


class EmbeddedVectorStore:
    """The store of one folder."""

    def __init__(self, space: Space, folder: str) -> None:
        path = Path(folder)
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = _lock(path)
        try:
            _check_space(space, path / "space.json")
        except ConfigurationError:
            os.close(self._lock)
            raise
        self._folder = path / "shard"
        self._shard = _open_shard(space, self._folder)
        self._optimizing = threading.Lock()
        self._unindexed = 0
        threading.Thread(target=read_ahead, args=[self._folder], name="read-ahead", daemon=True).start()

    def write(self, points: Sequence[Point], version: int) -> None:
        """Upsert `points` at `version`, skipping ids stored at a newer version."""
        not_newer = Filter(must=[FieldCondition("version", range=RangeFloat(lte=version))])
        self._shard.update(UpdateOperation.upsert_points([_edge_point(point) for point in points], not_newer))
        # Points without vectors need no graph.
        self._optimize_if_due(sum(point.meaning is not None for point in points))

    def erase(self, scope: Scope) -> None:
        """Delete the points of `scope`."""
        self._shard.update(UpdateOperation.delete_points_by_filter(_filter(scope)))

    def read(self, ids: Sequence[str], fields: Sequence[str] = ()) -> dict[str, dict[str, Any]]:
        """Return the payloads of the stored `ids`, or only these fields of them."""
        fields_selector = PayloadSelector.Include(list(fields)) if fields else True
        records = self._shard.retrieve(list(ids), with_payload=fields_selector, with_vector=False)
        return {str(record.id): record.payload or {} for record in records}

    def terms(self, ids: Sequence[str]) -> dict[str, dict[int, float]]:
        """Return the term weights of the stored `ids`."""
        weights = {}
        for record in self._shard.retrieve(list(ids), with_payload=False, with_vector=[TERMS]):
            vectors: Any = record.vector or {}
            if TERMS in vectors:
                weights[str(record.id)] = dict(zip(vectors[TERMS].indices, vectors[TERMS].values, strict=True))
        return weights

    def count(self, scope: Scope) -> int:
        """Return the number of points in `scope`."""
        return self._shard.count(CountRequest(filter=_filter(scope), exact=True))

    def documents(self, tenant_id: str = "") -> set[Scope]:
        """Return the documents that have points, of one tenant or of all."""
        documents: set[Scope] = set()
        condition = _filter(Scope(tenant_id)) if tenant_id else None
        offset = None
        while True:
            request = ScrollRequest(
                offset, _PAGE, condition, PayloadSelector.Include(list(DOCUMENT_FIELDS)), with_vector=False
            )
            records, offset = self._shard.scroll(request)
            documents.update(document_of(record.payload or {}) for record in records)
            if offset is None:
                return documents

    def search(self, queries: Sequence[VectorQuery]) -> list[dict[str, float]]:
        """Return for each query the ids found, best first, with their scores."""
        # Most queries of a batch share their scopes.
        filters = {
            scope: _filter(scope)
            for scope in {each for query in queries for each in (query.scope, query.corpus) if each}
        }
        results = self._shard.query_batch(QueryBatchRequest([_request(query, filters) for query in queries]))
        return [{str(point.id): point.score for point in points} for points in results]

    def close(self) -> None:
        """Close the store. Everything written is kept."""
        with self._optimizing:
            self._shard.flush()
            self._shard.close()
        os.close(self._lock)

    def _optimize_if_due(self, written: int) -> None:
        """Optimize in the background after enough writes. Reads and writes continue in the meantime."""
        self._unindexed += written
        if self._unindexed >= _OPTIMIZE_AFTER and self._optimizing.acquire(blocking=False):
            self._unindexed = 0
            threading.Thread(target=self._optimize, name="optimizing", daemon=True).start()

    def _optimize(self) -> None:
        try:
            self._shard.flush()
            self._shard.optimize()
            # Newly written files are not in memory: a query would wait for hundreds of disk reads.
            read_ahead(self._folder)
        finally:
            self._optimizing.release()


def _lock(folder: Path) -> int:
    """Lock the folder and return the descriptor. The lock ends with the process at the latest."""
    lock = os.open(folder / "lock", os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        import fcntl
    except ImportError:  # Windows: the engine's own lock must suffice
        return lock
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise FolderLocked(
            f"another process has the index in {folder} open; use that process, or stop it first"
        ) from None
    return lock


def _check_space(space: Space, file: Path) -> None:
    if file.exists():
        space.require(json.loads(file.read_text(encoding="utf-8")))
        return
    unfinished = file.with_suffix(".new")
    unfinished.write_text(json.dumps(space.record()), encoding="utf-8")
    unfinished.rename(file)


def _open_shard(space: Space, folder: Path) -> EdgeShard:
    if folder.exists():
        return EdgeShard.load(str(folder), _config(space))
    # Created under another name, so that a killed process leaves nothing that looks like an index.
    unfinished = folder.with_name(f"{folder.name}.new")
    _make_empty(unfinished)
    shard = EdgeShard.create(str(unfinished), _config(space))
    shard.update(UpdateOperation.create_field_index("tenant", KeywordIndexParams(is_tenant=True)))
    for field in KEYWORDS:
        shard.update(UpdateOperation.create_field_index(field, PayloadSchemaType.Keyword))
    shard.update(UpdateOperation.create_field_index("version", PayloadSchemaType.Integer))
    shard.flush()
    shard.close()
    unfinished.rename(folder)
    return EdgeShard.load(str(folder))


def _make_empty(folder: Path) -> None:
    import shutil

    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()


def _config(space: Space) -> EdgeConfig:
    # Every search is one tenant's: graph links connect the tenant's own points (payload_m), none across tenants (m).
    tenant_links = HnswIndexConfig(m=0, ef_construct=100, full_scan_threshold=10_000, payload_m=_GRAPH_LINKS)
    no_links = HnswIndexConfig(m=0, ef_construct=4, full_scan_threshold=10_000)
    parts = EdgeVectorParams(
        space.dimensions,
        Distance.Cosine,
        multivector_config=MultiVectorConfig(MultiVectorComparator.MaxSim),
        datatype=VectorStorageDatatype.Turbo8,
        hnsw_config=no_links,
        memory=Memory.Cold,
    )
    vectors = {MEANING: EdgeVectorParams(space.dimensions, Distance.Cosine, hnsw_config=tenant_links)}
    return EdgeConfig(
        vectors=vectors | ({PARTS: parts} if space.tokens else {}),
        sparse_vectors={TERMS: EdgeSparseVectorParams(modifier=Modifier.Idf)},
        max_search_threads=_SEARCH_THREADS,
    )


def _edge_point(point: Point) -> EdgePoint:
    vectors: dict[str, Any] = {MEANING: point.meaning, PARTS: point.parts}
    if point.terms and point.terms.numbers:
        vectors[TERMS] = SparseVector(point.terms.numbers, point.terms.weights)
    return EdgePoint(point.id, {name: value for name, value in vectors.items() if value}, point.payload)


def _request(query: VectorQuery, filters: Mapping[Scope, Filter]) -> QueryRequest:
    params = SearchParams(exact=query.exact, idf=IdfParams(filters[query.corpus]) if query.corpus else None)
    return QueryRequest(limit=query.limit, query=_query(query.near), filter=filters[query.scope], params=params)


def _query(near: Vector | RemoteText | list[Vector] | SparseTerms) -> Query:
    if isinstance(near, RemoteText):
        raise TypeError("the engine in this process does not embed texts")
    if isinstance(near, SparseTerms):
        return Query.Nearest(SparseVector(near.numbers, near.weights), TERMS)
    # One vector, or one per token: the engine distinguishes them by the same test.
    return Query.Nearest(near, PARTS if isinstance(near[0], list) else MEANING)


def _filter(scope: Scope) -> Filter:
    must: list[Any] = [FieldCondition("tenant", match=MatchValue(scope.tenant_id))]
    if scope.collections is not None:
        must.append(FieldCondition("collection", match=MatchAny(list(scope.collections))))
    if scope.document is not None:
        must.append(FieldCondition("document", match=MatchValue(scope.document)))
    if scope.kind is not None:
        must.append(FieldCondition("kind", match=MatchValue(scope.kind)))
    must += [FieldCondition("tags", match=MatchValue(tag)) for tag in scope.tags]
    if scope.ids is not None:
        must.append(HasIdCondition(set(scope.ids)))
    if scope.before_version is not None:
        must.append(FieldCondition("version", range=RangeFloat(lt=scope.before_version)))
    others: list[Any] = []
    if scope.excluded_documents:
        others.append(FieldCondition("document", match=MatchAny(list(scope.excluded_documents))))
    return Filter(must=must, must_not=others or None)
