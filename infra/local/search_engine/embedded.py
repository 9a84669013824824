"""Qdrant's engine in this process, with its data in a folder that belongs to one process at a time."""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import qdrant_edge as edge

from infra.local.free_space import require_free_space, reserve_released
from infra.local.search_engine.errors import FolderLocked, IndexDamaged
from shared.rpc.errors import Unavailable, disk_full
from shared.search.bm25 import SparseTerms
from shared.search.cpu_count import cpu_count
from shared.search.embedding import RemoteText
from shared.search.store import (
    DOCUMENT_FIELDS,
    INTEGERS,
    KEYWORDS,
    MEANING,
    PARTS,
    TERMS,
    RecordStore,
    Scope,
    is_whole,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from shared.search.embedding import Vector
    from shared.search.embedding.models import Space
    from shared.search.store import Point, VectorQuery

_GRAPH_LINKS: Final = 16
_PAGE: Final = 1_000
_OPTIMIZE_AFTER: Final = 5_000
_POLL_SECONDS: Final = 0.05
_SEARCH_THREADS: Final = max(1, cpu_count() // 2)
"""Search threads keep their cores busy for a while after a search. The other cores embed questions."""
_READ_AHEAD_SHARE: Final = 4
"""A folder may take a quarter of the machine's memory. A larger one is read on demand."""


class EmbeddedVectorStore(RecordStore):
    """The store of one folder. If the lock is taken, wait for it `lock_seconds`."""

    def __init__(self, space: Space, folder: str, lock_seconds: float = 0) -> None:
        path = Path(folder)
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder = path / "shard"
        self._lock = _lock(path, lock_seconds)
        try:
            with reserve_released(path):
                _check_space(space, path / "space.json")
                self._shard = _open_shard(space, self._folder)
        except BaseException:
            os.close(self._lock)
            raise
        self._optimizing = threading.Lock()
        self._unindexed = 0
        threading.Thread(target=read_ahead, args=[self._folder], name="read-ahead", daemon=True).start()

    def write(self, points: Sequence[Point], version: int) -> None:
        """Upsert `points` at `version`, skipping ids stored at a newer version."""
        require_free_space(self._folder)
        not_newer = edge.Filter(must=[edge.FieldCondition("version", range=edge.RangeFloat(lte=version))])
        self._shard.update(edge.UpdateOperation.upsert_points([_edge_point(point) for point in points], not_newer))
        # Points without vectors need no graph.
        self._optimize_if_due(sum(point.meaning is not None for point in points))

    def set_fields(self, scope: Scope, fields: dict[str, Any]) -> None:
        """Set these fields of the payloads of the points of `scope`."""
        require_free_space(self._folder)
        self._shard.update(edge.UpdateOperation.set_payload_by_filter(_filter(scope), fields))

    def erase(self, scope: Scope) -> None:
        """Delete the points of `scope`."""
        require_free_space(self._folder)
        self._shard.update(edge.UpdateOperation.delete_points_by_filter(_filter(scope)))

    def count(self, scope: Scope) -> int:
        """Return the number of points in `scope`."""
        return self._shard.count(edge.CountRequest(filter=_filter(scope), exact=True))

    def count_documents(self) -> int:
        """Return the number of documents that the index knows, of all tenants, deleted ones included."""
        kind = edge.FieldCondition("kind", match=edge.MatchValue("document"))
        return self._shard.count(edge.CountRequest(filter=edge.Filter(must=[kind]), exact=True))

    def latest(self, scope: Scope, limit: int) -> list[dict[str, Any]]:
        """Return the payloads of the points of `scope` with the latest times `at`, latest first."""
        order = edge.OrderBy("at", edge.Direction.Desc)
        records, _ = self._shard.scroll(edge.ScrollRequest(None, limit, _filter(scope), True, False, order))
        return [record.payload or {} for record in records]

    def _retrieve(
        self, ids: Sequence[str], *, payload: Sequence[str] | bool, vectors: Sequence[str] = ()
    ) -> Sequence[Any]:
        fields = payload if isinstance(payload, bool) else edge.PayloadSelector.Include(list(payload))
        return self._shard.retrieve(list(ids), with_payload=fields, with_vector=list(vectors) or False)

    def _scroll(self, scope: Scope | None, offset: Any) -> tuple[Sequence[Any], Any]:
        fields = edge.PayloadSelector.Include(list(DOCUMENT_FIELDS))
        condition = _filter(scope) if scope else None
        return self._shard.scroll(edge.ScrollRequest(offset, _PAGE, condition, fields, with_vector=False))

    def _query(self, queries: Sequence[VectorQuery]) -> Iterable[Iterable[Any]]:
        # Most queries of a batch share their scopes.
        filters = {
            scope: _filter(scope)
            for scope in {each for query in queries for each in (query.scope, query.corpus) if each}
        }
        return self._shard.query_batch(edge.QueryBatchRequest([_request(query, filters) for query in queries]))

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
            # It writes new files before it deletes the old ones.
            require_free_space(self._folder, disk_usage(self._folder))
            self._shard.flush()
            self._shard.optimize()
            # Newly written files are not in memory: a query would wait for hundreds of disk reads.
            read_ahead(self._folder)
        except Unavailable:
            self._unindexed = _OPTIMIZE_AFTER
        finally:
            self._optimizing.release()


def disk_usage(folder: Path) -> int:
    """Return the bytes that the files of a folder take on disk."""
    return sum(status.st_blocks * 512 for _, status in _files(folder))


def _files(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield the files of `folder`. The engine may delete files and folders in the meantime."""
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                file = Path(parent, name)
                yield file, file.stat()


def _lock(folder: Path, seconds: float) -> int:
    """Lock the folder within `seconds` and return the descriptor. The lock ends with the process at the latest."""
    lock = os.open(folder / "lock", os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        import fcntl
    except ImportError:  # Windows: the engine's own lock must suffice
        return lock
    deadline = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() < deadline:
                time.sleep(_POLL_SECONDS)
                continue
            os.close(lock)
            raise FolderLocked(
                f"another process has the index in {folder} open; use that process, or stop it first"
            ) from None
        return lock


def _check_space(space: Space, file: Path) -> None:
    if file.exists():
        try:
            recorded = json.loads(file.read_bytes())
            space.require(recorded, f"The index {file.parent}")
        except (ValueError, AttributeError):
            raise IndexDamaged(f"the index in {file.parent} is damaged") from None
        return
    require_free_space(file.parent)
    unfinished = file.with_suffix(".new")
    unfinished.write_text(json.dumps(space.record()), encoding="utf-8")
    unfinished.rename(file)


def _open_shard(space: Space, folder: Path) -> edge.EdgeShard:
    if folder.exists():
        if not is_whole(folder):
            raise IndexDamaged(f"the index in {folder.parent} has lost its files")
        try:
            return edge.EdgeShard.load(str(folder), _config(space))
        except BaseException as error:  # the engine's panics are no Exception
            if "No space left" in str(error):
                raise disk_full() from None
            raise IndexDamaged(f"the index in {folder.parent} is damaged") from error
    require_free_space(folder.parent)
    # Created under another name, so that a killed process leaves nothing that looks like an index.
    unfinished = folder.with_name(f"{folder.name}.new")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    shard = edge.EdgeShard.create(str(unfinished), _config(space))
    shard.update(edge.UpdateOperation.create_field_index("tenant", edge.KeywordIndexParams(is_tenant=True)))
    for field in KEYWORDS:
        shard.update(edge.UpdateOperation.create_field_index(field, edge.PayloadSchemaType.Keyword))
    for field in INTEGERS:
        shard.update(edge.UpdateOperation.create_field_index(field, edge.PayloadSchemaType.Integer))
    shard.flush()
    shard.close()
    unfinished.rename(folder)
    return edge.EdgeShard.load(str(folder))


def _config(space: Space) -> edge.EdgeConfig:
    # Every search is one tenant's: graph links connect the tenant's own points (payload_m), none across tenants (m).
    tenant_links = edge.HnswIndexConfig(m=0, ef_construct=100, full_scan_threshold=10_000, payload_m=_GRAPH_LINKS)
    no_links = edge.HnswIndexConfig(m=0, ef_construct=4, full_scan_threshold=10_000)
    parts = edge.EdgeVectorParams(
        space.dimensions,
        edge.Distance.Cosine,
        multivector_config=edge.MultiVectorConfig(edge.MultiVectorComparator.MaxSim),
        datatype=edge.VectorStorageDatatype.Turbo8,
        hnsw_config=no_links,
        memory=edge.Memory.Cold,
    )
    # Cold: otherwise each opening allocates every file to its full size, on a file system in memory.
    meaning = edge.EdgeVectorParams(
        space.dimensions, edge.Distance.Cosine, hnsw_config=tenant_links, memory=edge.Memory.Cold
    )
    return edge.EdgeConfig(
        vectors={MEANING: meaning} | ({PARTS: parts} if space.tokens else {}),
        sparse_vectors={TERMS: edge.EdgeSparseVectorParams(modifier=edge.Modifier.Idf)},
        max_search_threads=_SEARCH_THREADS,
    )


def _edge_point(point: Point) -> edge.Point:
    vectors: dict[str, Any] = {MEANING: point.meaning, PARTS: point.parts}
    if point.terms and point.terms.numbers:
        vectors[TERMS] = edge.SparseVector(point.terms.numbers, point.terms.weights)
    return edge.Point(point.id, {name: value for name, value in vectors.items() if value}, point.payload)


def _request(query: VectorQuery, filters: Mapping[Scope, edge.Filter]) -> edge.QueryRequest:
    params = edge.SearchParams(exact=query.exact, idf=edge.IdfParams(filters[query.corpus]) if query.corpus else None)
    return edge.QueryRequest(limit=query.limit, query=_query(query.near), filter=filters[query.scope], params=params)


def _query(near: Vector | RemoteText | list[Vector] | SparseTerms) -> edge.Query:
    if isinstance(near, RemoteText):
        raise TypeError("the engine in this process does not embed texts")
    if isinstance(near, SparseTerms):
        return edge.Query.Nearest(edge.SparseVector(near.numbers, near.weights), TERMS)
    # One vector, or one per token: the engine distinguishes them by the same test.
    return edge.Query.Nearest(near, MEANING if isinstance(near[0], float) else PARTS)


def _filter(scope: Scope) -> edge.Filter:
    must: list[Any] = [edge.FieldCondition(name, match=edge.MatchValue(value)) for name, value in scope.required_values]
    if scope.collections is not None:
        must.append(edge.FieldCondition("collection", match=edge.MatchAny(list(scope.collections))))
    if scope.ids is not None:
        must.append(edge.HasIdCondition(set(scope.ids)))
    if scope.roles:
        must.append(edge.FieldCondition("role", match=edge.MatchAny(list(scope.roles))))
    must += [edge.FieldCondition("metadata", match=edge.MatchAny(list(values))) for values in scope.metadata]
    for field, start, end in scope.bounds:
        must.append(edge.FieldCondition(field, range=edge.RangeFloat(gte=start, lt=end)))
    others: list[Any] = []
    if scope.excluded_documents:
        others.append(edge.FieldCondition("document", match=edge.MatchAny(list(scope.excluded_documents))))
    if scope.excluded_ids:
        others.append(edge.HasIdCondition(set(scope.excluded_ids)))
    return edge.Filter(must=must, must_not=others or None)


def read_ahead(folder: Path) -> None:
    """Ask the system to read the files of `folder` ahead, unless they are too large for its memory."""
    if sys.platform != "linux":
        return
    limit = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // _READ_AHEAD_SHARE
    files = list(_files(folder))
    if sum(status.st_size for _, status in files) > limit:
        return
    for file, _ in files:
        with suppress(OSError):
            descriptor = os.open(file, os.O_RDONLY)
            try:
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_WILLNEED)
            finally:
                os.close(descriptor)
