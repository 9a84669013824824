"""Vector store on Qdrant Cloud or any Qdrant server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from shared.platform.config import ConfigurationError
from shared.search.bm25 import SparseTerms
from shared.search.embedding import RemoteText
from shared.search.store import DOCUMENT_FIELDS, INTEGERS, KEYWORDS, MEANING, PARTS, TERMS, RecordStore
from shared.search.store.qdrant_rest import QdrantCollection

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from shared.search.embedding.models import Space
    from shared.search.store import Point, Scope, VectorQuery
    from shared.search.store.qdrant_rest import Json

_GRAPH_LINKS: Final = 16
_OVERSAMPLING: Final = 2
"""Of 13,000 passages, 99.6 % of the 32 nearest are found so, as without quantization, and 96 % by the bytes alone."""
_BATCH: Final = 16
"""Points of a request: with the token vectors of 510 tokens each they take 20 MB, of the 32 MB that Qdrant accepts."""
_PAGE: Final = 1_000
_MIN_VERSION: Final = [1, 20]


def connect(space: Space, url: str, collection: str) -> QdrantServerStore:
    """Return a collection of a server. It is created at the first use."""
    opened = QdrantCollection(url, collection)
    version = opened.server_version()
    if [int(part) for part in version.split("-")[0].split(".")[:2]] < _MIN_VERSION:
        # 1.19 refuses `turbo8` vectors; a still older server silently ignores the corpus for counting rarity.
        raise ConfigurationError(f"Qdrant {version} at {url} is too old; 1.20 or newer is needed")
    return QdrantServerStore(opened, collection, space)


class QdrantServerStore(RecordStore):
    """One collection of a server, shared by all tenants."""

    def __init__(self, collection: QdrantCollection, name: str, space: Space) -> None:
        self._collection = collection
        info = collection.info()
        if info is None:
            collection.create(_settings(space))
            info = collection.info()
        if info is None or not info.metadata:
            raise ConfigurationError(f"the Qdrant collection '{name}' is not a knowledge index; name another")
        space.require(info.metadata, f"The Qdrant collection '{name}'")
        # The creator may have been killed before it created all indexes.
        for field, schema in _field_schemas().items():
            if field not in info.indexed:
                collection.index_field(field, schema)

    def write(self, points: Sequence[Point], version: int) -> None:
        """Upsert `points` at `version`, skipping ids stored at a newer version."""
        not_newer = {"must": [{"key": "version", "range": {"lte": version}}]}
        for start in range(0, len(points), _BATCH):
            self._collection.upsert([_point(each) for each in points[start : start + _BATCH]], not_newer)

    def set_fields(self, scope: Scope, fields: dict[str, Any]) -> None:
        """Set these fields of the payloads of the points of `scope`."""
        self._collection.set_payload(fields, _filter(scope))

    def erase(self, scope: Scope) -> None:
        """Delete the points of `scope`."""
        self._collection.delete(_filter(scope))

    def count(self, scope: Scope) -> int:
        """Return the number of points in `scope`."""
        return self._collection.count(_filter(scope))

    def count_documents(self) -> int:
        """Return the number of documents that the index knows, of all tenants, deleted ones included."""
        return self._collection.count({"must": [{"key": "kind", "match": {"value": "document"}}]})

    def latest(self, scope: Scope, limit: int) -> list[dict[str, Any]]:
        """Return the payloads of the points of `scope` with the latest times `at`, latest first."""
        return [each.payload for each in self._collection.scroll_latest(_filter(scope), "at", limit)]

    def _retrieve(
        self, ids: Sequence[str], *, payload: Sequence[str] | bool, vectors: Sequence[str] = ()
    ) -> Sequence[Any]:
        return self._collection.retrieve(ids, payload=payload, vectors=vectors)

    def _scroll(self, scope: Scope | None, offset: Any) -> tuple[Sequence[Any], Any]:
        return self._collection.scroll(_filter(scope) if scope else None, DOCUMENT_FIELDS, _PAGE, offset)

    def _query(self, queries: Sequence[VectorQuery]) -> Iterable[Iterable[Any]]:
        return self._collection.query([_search(query) for query in queries])

    def close(self) -> None:
        """Close the store. Everything written is kept."""
        self._collection.close()


def _settings(space: Space) -> Json:
    # Every search is one tenant's: graph links connect the tenant's own points (payload_m), none across tenants (m).
    meaning = {
        "size": space.dimensions,
        "distance": "Cosine",
        "hnsw_config": {"m": 0, "payload_m": _GRAPH_LINKS},
        # One byte per dimension is kept in memory. Searches ask for rescoring with the vectors on disk.
        "quantization_config": {"scalar": {"type": "int8", "quantile": 0.99, "always_ram": True}},
        "on_disk": True,
    }
    parts = {
        "size": space.dimensions,
        "distance": "Cosine",
        "multivector_config": {"comparator": "max_sim"},
        "datatype": "turbo8",
        "hnsw_config": {"m": 0},
        "on_disk": True,
    }
    return {
        "vectors": {MEANING: meaning} | ({PARTS: parts} if space.tokens else {}),
        "sparse_vectors": {TERMS: {"modifier": "idf"}},
        "metadata": space.record(),
    }


def _field_schemas() -> dict[str, Json | str]:
    others = dict.fromkeys(KEYWORDS, "keyword") | dict.fromkeys(INTEGERS, "integer")
    return {"tenant": {"type": "keyword", "is_tenant": True}, **others}


def _point(point: Point) -> Json:
    vectors: Json = {}
    if point.meaning:
        vectors[MEANING] = _vector(point.meaning)
    if point.parts:
        vectors[PARTS] = point.parts
    if point.terms and point.terms.numbers:
        vectors[TERMS] = _vector(point.terms)
    return {"id": point.id, "payload": point.payload, "vector": vectors}


def _search(query: VectorQuery) -> Json:
    name = _vector_name(query.near)
    search = {
        "query": {"nearest": _vector(query.near)},
        "using": name,
        "filter": _filter(query.scope),
        "limit": query.limit,
    }
    params: Json = {"exact": True} if query.exact else {}
    params |= {"idf": {"corpus": _filter(query.corpus)}} if query.corpus else {}
    # By default, a server returns the scores of the bytes, which are off by a cosine of up to .004.
    params |= {"quantization": {"rescore": True, "oversampling": _OVERSAMPLING}} if name == MEANING else {}
    return search | ({"params": params} if params else {})


def _vector_name(near: object) -> str:
    if isinstance(near, SparseTerms):
        return TERMS
    return PARTS if isinstance(near, list) and isinstance(near[0], list) else MEANING


def _vector(near: object) -> object:
    if isinstance(near, RemoteText):
        return {"text": near.text, "model": near.model}
    return {"indices": near.numbers, "values": near.weights} if isinstance(near, SparseTerms) else near


def _filter(scope: Scope) -> Json:
    must: list[Json] = [{"key": name, "match": {"value": value}} for name, value in scope.required_values]
    if scope.collections is not None:
        must.append({"key": "collection", "match": {"any": list(scope.collections)}})
    if scope.ids is not None:
        must.append({"has_id": list(scope.ids)})
    if scope.roles:
        must.append({"key": "role", "match": {"any": list(scope.roles)}})
    must += [{"key": "metadata", "match": {"any": list(values)}} for values in scope.metadata]
    for field, start, end in scope.bounds:
        limits = {"gte": start, "lt": end}
        must.append({"key": field, "range": {name: limit for name, limit in limits.items() if limit is not None}})
    must_not: list[Json] = []
    if scope.excluded_documents:
        must_not.append({"key": "document", "match": {"any": list(scope.excluded_documents)}})
    if scope.excluded_ids:
        must_not.append({"has_id": list(scope.excluded_ids)})
    return {"must": must} | ({"must_not": must_not} if must_not else {})
