"""Qdrant's engine in this process, its data in one folder, which belongs to one process at a time."""

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
from shared.knowledge.store import HOLDER, KEYWORDS, MEANING, PARTS, TERMS, Scope, document_of
from shared.knowledge.store.readahead import read_ahead

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from shared.knowledge.embedding import Vector
    from shared.knowledge.embedding.spaces import Space
    from shared.knowledge.store import Point, VectorQuery

_LINKS: Final = 16
_PAGE: Final = 1_000
_SETTLE_AFTER: Final = 5_000
_SEARCHING: Final = max(1, cpu_count() // 2)
"""Threads: each keeps its core busy for a while after a search, and questions are embedded on the others."""


class FolderLocked(Exception):
    """Another process has this folder's index open."""


class EmbeddedVectorStore:
    """The store of one folder."""

    def __init__(self, space: Space, folder: str) -> None:
        path = Path(folder)
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = _locked(path)
        try:
            _remember(space, path / "space.json")
        except ConfigurationError:
            os.close(self._lock)
            raise
        self._folder = path / "shard"
        self._shard = _opened(space, self._folder)
        self._settling = threading.Lock()
        self._unsettled = 0
        threading.Thread(target=read_ahead, args=[self._folder], name="warming", daemon=True).start()

    def write(self, points: Sequence[Point], version: int) -> None:
        """Keep `points`, which are all of `version`, but for those that are there in a newer one."""
        not_newer = Filter(must=[FieldCondition("version", range=RangeFloat(lte=version))])
        self._shard.update(UpdateOperation.upsert_points([_edge_point(point) for point in points], not_newer))
        # Points without vectors have nothing to index.
        self._settle(sum(point.meaning is not None for point in points))

    def erase(self, scope: Scope) -> None:
        """Forget the points of `scope`."""
        self._shard.update(UpdateOperation.delete_points_by_filter(_filter(scope)))

    def read(self, ids: Sequence[str], fields: Sequence[str] = ()) -> dict[str, dict[str, Any]]:
        """The payloads of those of `ids` that are there, or these fields of them."""
        wanted = PayloadSelector.Include(list(fields)) if fields else True
        found = self._shard.retrieve(list(ids), with_payload=wanted, with_vector=False)
        return {str(record.id): record.payload or {} for record in found}

    def terms(self, ids: Sequence[str]) -> dict[str, dict[int, float]]:
        """The weights of the terms of those of `ids` that are there."""
        weights = {}
        for record in self._shard.retrieve(list(ids), with_payload=False, with_vector=[TERMS]):
            vectors: Any = record.vector or {}
            if TERMS in vectors:
                weights[str(record.id)] = dict(zip(vectors[TERMS].indices, vectors[TERMS].values, strict=True))
        return weights

    def count(self, scope: Scope) -> int:
        """How many points `scope` has."""
        return self._shard.count(CountRequest(filter=_filter(scope), exact=True))

    def documents(self, tenant_id: str = "") -> set[Scope]:
        """The documents that there are points of: a tenant's, or everybody's."""
        found: set[Scope] = set()
        condition = _filter(Scope(tenant_id)) if tenant_id else None
        offset = None
        while True:
            asked = ScrollRequest(offset, _PAGE, condition, PayloadSelector.Include(list(HOLDER)), with_vector=False)
            records, offset = self._shard.scroll(asked)
            found.update(document_of(record.payload or {}) for record in records)
            if offset is None:
                return found

    def search(self, asks: Sequence[VectorQuery]) -> list[dict[str, float]]:
        """For each of `asks` the ids found, best first, with their scores."""
        # Most of a batch is about the same points.
        filters = {scope: _filter(scope) for scope in {each for ask in asks for each in (ask.scope, ask.among) if each}}
        found = self._shard.query_batch(QueryBatchRequest([_request(ask, filters) for ask in asks]))
        return [{str(point.id): point.score for point in points} for points in found]

    def close(self) -> None:
        """Let go of the store; what was written is kept."""
        with self._settling:
            self._shard.flush()
            self._shard.close()
        os.close(self._lock)

    def _settle(self, written: int) -> None:
        """Index what was written once it is worth it; nobody who writes or asks meanwhile is held up."""
        self._unsettled += written
        if self._unsettled >= _SETTLE_AFTER and self._settling.acquire(blocking=False):
            self._unsettled = 0
            threading.Thread(target=self._index, name="settling", daemon=True).start()

    def _index(self) -> None:
        try:
            self._shard.flush()
            self._shard.optimize()
            # What the engine has just written is not in memory: a query would wait for some hundred reads of the disk.
            read_ahead(self._folder)
        finally:
            self._settling.release()


def _locked(folder: Path) -> int:
    """A descriptor that has the folder; where nobody closes it, it goes with the process."""
    lock = os.open(folder / "lock", os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        import fcntl
    except ImportError:  # Windows: the engine's own lock must do
        return lock
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise FolderLocked(f"another process has the index in {folder} open; ask it, or stop it first") from None
    return lock


def _remember(space: Space, file: Path) -> None:
    if file.exists():
        space.require(json.loads(file.read_text(encoding="utf-8")))
        return
    unfinished = file.with_suffix(".new")
    unfinished.write_text(json.dumps(space.record()), encoding="utf-8")
    unfinished.rename(file)


def _opened(space: Space, folder: Path) -> EdgeShard:
    if folder.exists():
        return EdgeShard.load(str(folder), _config(space))
    # Made aside, so that whoever is killed on the way leaves nothing that looks like an index.
    unfinished = folder.with_name(f"{folder.name}.new")
    _empty(unfinished)
    shard = EdgeShard.create(str(unfinished), _config(space))
    shard.update(UpdateOperation.create_field_index("tenant", KeywordIndexParams(is_tenant=True)))
    for field in KEYWORDS:
        shard.update(UpdateOperation.create_field_index(field, PayloadSchemaType.Keyword))
    shard.update(UpdateOperation.create_field_index("version", PayloadSchemaType.Integer))
    shard.flush()
    shard.close()
    unfinished.rename(folder)
    return EdgeShard.load(str(folder))


def _empty(folder: Path) -> None:
    import shutil

    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()


def _config(space: Space) -> EdgeConfig:
    # Every search is one tenant's: links lead to the tenant's own points (payload_m), none across (m).
    own = HnswIndexConfig(m=0, ef_construct=100, full_scan_threshold=10_000, payload_m=_LINKS)
    unlinked = HnswIndexConfig(m=0, ef_construct=4, full_scan_threshold=10_000)
    parts = EdgeVectorParams(
        space.dimensions,
        Distance.Cosine,
        multivector_config=MultiVectorConfig(MultiVectorComparator.MaxSim),
        datatype=VectorStorageDatatype.Turbo8,
        hnsw_config=unlinked,
        memory=Memory.Cold,
    )
    vectors = {MEANING: EdgeVectorParams(space.dimensions, Distance.Cosine, hnsw_config=own)}
    return EdgeConfig(
        vectors=vectors | ({PARTS: parts} if space.tokens else {}),
        sparse_vectors={TERMS: EdgeSparseVectorParams(modifier=Modifier.Idf)},
        max_search_threads=_SEARCHING,
    )


def _edge_point(point: Point) -> EdgePoint:
    vectors: dict[str, Any] = {MEANING: point.meaning, PARTS: point.parts}
    if point.terms and point.terms.numbers:
        vectors[TERMS] = SparseVector(point.terms.numbers, point.terms.weights)
    return EdgePoint(point.id, {name: value for name, value in vectors.items() if value}, point.payload)


def _request(ask: VectorQuery, filters: Mapping[Scope, Filter]) -> QueryRequest:
    params = SearchParams(exact=ask.exact, idf=IdfParams(filters[ask.among]) if ask.among else None)
    return QueryRequest(limit=ask.limit, query=_query(ask.near), filter=filters[ask.scope], params=params)


def _query(near: Vector | RemoteText | list[Vector] | SparseTerms) -> Query:
    if isinstance(near, RemoteText):
        raise TypeError("the engine in this process embeds no texts")
    if isinstance(near, SparseTerms):
        return Query.Nearest(SparseVector(near.numbers, near.weights), TERMS)
    # One vector, or one for each part: the engine tells them apart as we do.
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
    if scope.before is not None:
        must.append(FieldCondition("version", range=RangeFloat(lt=scope.before)))
    others: list[Any] = []
    if scope.without:
        others.append(FieldCondition("document", match=MatchAny(list(scope.without))))
    return Filter(must=must, must_not=others or None)
