"""Qdrant Cloud, or any Qdrant server, through its client."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from qdrant_client import QdrantClient, models
from qdrant_client.common.client_exceptions import QdrantException
from qdrant_client.http.exceptions import ApiException, UnexpectedResponse

from shared.config import ConfigurationError
from shared.knowledge.bm25 import SparseTerms
from shared.knowledge.embedding import RemoteText
from shared.knowledge.store import HOLDER, KEYWORDS, MEANING, PARTS, TERMS, Scope, document_of
from shared.rpc.errors import Unavailable
from shared.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Sequence

    from shared.knowledge.embedding.spaces import Space
    from shared.knowledge.store import Point, VectorQuery

_LINKS: Final = 16
_SECONDS: Final = 5
_BATCH: Final = 64
_PAGE: Final = 1_000
_CONFLICT: Final = 409
_UNWELCOME: Final = (401, 403)
_OLDEST: Final = [1, 19]

Found = TypeVar("Found")


def connect(space: Space, url: str, key: str, collection: str) -> QdrantServerStore:
    """The collection of a server, made at its first use."""
    client = QdrantClient(
        url=url, api_key=key or None, timeout=_SECONDS, cloud_inference=True, check_compatibility=False
    )
    version = _asked(client.info).version
    if [int(part) for part in version.split("-")[0].split(".")[:2]] < _OLDEST:
        # An older one would not say that it ignores whose words a rarity is to be counted among.
        raise ConfigurationError(f"Qdrant {version} at {url} is too old; 1.19 or newer is needed")
    return QdrantServerStore(client, collection, space)


class QdrantServerStore:
    """One collection of a server, shared by all tenants."""

    def __init__(self, client: QdrantClient, collection: str, space: Space) -> None:
        self._client = client
        self._collection = collection
        if not _is_there(client, collection):
            _create(client, collection, space)
        made = _asked(lambda: client.get_collection(collection))
        if not made.config.metadata:
            raise ConfigurationError(f"the Qdrant collection '{collection}' is not a knowledge index; name another")
        space.require(made.config.metadata)
        # Whoever made it may have ended before it was done.
        _index_fields(client, collection, made.payload_schema)

    def write(self, points: Sequence[Point], version: int) -> None:
        """Keep `points`, which are all of `version`, but for those that are there in a newer one."""
        not_newer = models.Filter(must=[models.FieldCondition(key="version", range=models.Range(lte=version))])
        for start in range(0, len(points), _BATCH):
            batch = [_structure(point) for point in points[start : start + _BATCH]]
            _asked(partial(self._client.upsert, self._collection, batch, wait=True, update_filter=not_newer))

    def erase(self, scope: Scope) -> None:
        """Forget the points of `scope`."""
        chosen = models.FilterSelector(filter=_filter(scope))
        _asked(lambda: self._client.delete(self._collection, chosen, wait=True))

    def read(self, ids: Sequence[str], fields: Sequence[str] = ()) -> dict[str, dict[str, Any]]:
        """The payloads of those of `ids` that are there, or these fields of them."""
        wanted = list(fields) or True
        found = _asked(lambda: self._client.retrieve(self._collection, list(ids), with_payload=wanted))
        return {str(record.id): record.payload or {} for record in found}

    def terms(self, ids: Sequence[str]) -> dict[str, dict[int, float]]:
        """The weights of the terms of those of `ids` that are there."""
        found = _asked(
            lambda: self._client.retrieve(self._collection, list(ids), with_payload=False, with_vectors=[TERMS])
        )
        weights = {}
        for record in found:
            vectors: Any = record.vector or {}
            if TERMS in vectors:
                weights[str(record.id)] = dict(zip(vectors[TERMS].indices, vectors[TERMS].values, strict=True))
        return weights

    def count(self, scope: Scope) -> int:
        """How many points `scope` has."""
        return _asked(lambda: self._client.count(self._collection, _filter(scope), exact=True)).count

    def documents(self, tenant_id: str = "") -> set[Scope]:
        """The documents that there are points of: a tenant's, or everybody's."""
        found: set[Scope] = set()
        condition = _filter(Scope(tenant_id)) if tenant_id else None
        offset: Any = None
        while True:
            asked = partial(self._client.scroll, self._collection, condition, _PAGE, offset=offset)
            records, offset = _asked(partial(asked, with_payload=list(HOLDER)))
            found.update(document_of(record.payload or {}) for record in records)
            if offset is None:
                return found

    def search(self, asks: Sequence[VectorQuery]) -> list[dict[str, float]]:
        """For each of `asks` the ids found, best first, with their scores."""
        requests = [_request(ask) for ask in asks]
        found = _asked(lambda: self._client.query_batch_points(self._collection, requests))
        return [{str(point.id): point.score for point in response.points} for response in found]

    def close(self) -> None:
        """Let go of the store; what was written is kept."""
        self._client.close()


def _is_there(client: QdrantClient, collection: str) -> bool:
    try:
        return _asked(lambda: client.collection_exists(collection))
    except UnexpectedResponse as error:
        if error.status_code not in _UNWELCOME:
            raise
        raise ConfigurationError("Qdrant refuses the key KHO_QDRANT_KEY, or knows none") from None


def _asked(call: Callable[[], Found]) -> Found:
    try:
        return call()
    except UnexpectedResponse as error:
        # Refusals are our own defect or a wrong key: only what may pass by itself is retried.
        if error.status_code is not None and error.status_code < 500 and error.status_code != 429:
            raise
        logger.warning("vector store", extra={"failure": f"status {error.status_code}"})
    except (ApiException, QdrantException) as error:
        logger.warning("vector store", extra={"failure": type(error).__name__})
    raise Unavailable("The vector store is not answering.")


def _create(client: QdrantClient, collection: str, space: Space) -> None:
    # Every search is one tenant's: links lead to the tenant's own points (payload_m), none across (m).
    own = models.HnswConfigDiff(m=0, payload_m=_LINKS)
    # A byte a dimension is kept in memory; what that finds is scored again by the vectors on disk.
    smaller = models.ScalarQuantization(
        scalar=models.ScalarQuantizationConfig(type=models.ScalarType.INT8, quantile=0.99, always_ram=True)
    )
    vectors = {
        MEANING: models.VectorParams(
            size=space.dimensions,
            distance=models.Distance.COSINE,
            hnsw_config=own,
            quantization_config=smaller,
            on_disk=True,
        )
    }
    if space.tokens:
        vectors[PARTS] = models.VectorParams(
            size=space.dimensions,
            distance=models.Distance.COSINE,
            multivector_config=models.MultiVectorConfig(comparator=models.MultiVectorComparator.MAX_SIM),
            datatype=models.Datatype.TURBO8,
            hnsw_config=models.HnswConfigDiff(m=0),
            on_disk=True,
        )
    try:
        _asked(
            lambda: client.create_collection(
                collection,
                vectors_config=vectors,
                sparse_vectors_config={TERMS: models.SparseVectorParams(modifier=models.Modifier.IDF)},
                metadata=space.record(),
            )
        )
    except UnexpectedResponse as error:
        if error.status_code != _CONFLICT:
            raise
        # Another function made it in the same moment.


def _index_fields(client: QdrantClient, collection: str, indexed: Container[str]) -> None:
    tenant = models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True)
    keywords: dict[str, Any] = dict.fromkeys(KEYWORDS, models.PayloadSchemaType.KEYWORD)
    for field, schema in ({"tenant": tenant} | keywords | {"version": models.PayloadSchemaType.INTEGER}).items():
        if field not in indexed:
            _asked(partial(client.create_payload_index, collection, field, schema))


def _structure(point: Point) -> models.PointStruct:
    vectors: dict[str, Any] = {}
    if point.meaning:
        vectors[MEANING] = _document(point.meaning) if isinstance(point.meaning, RemoteText) else point.meaning
    if point.parts:
        vectors[PARTS] = point.parts
    if point.terms and point.terms.numbers:
        vectors[TERMS] = _sparse(point.terms)
    return models.PointStruct(id=point.id, payload=point.payload, vector=vectors)


def _request(ask: VectorQuery) -> models.QueryRequest:
    near: Any = ask.near
    using = MEANING
    if isinstance(ask.near, RemoteText):
        near = _document(ask.near)
    elif isinstance(ask.near, SparseTerms):
        near, using = _sparse(ask.near), TERMS
    elif isinstance(ask.near[0], list):
        using = PARTS
    idf = models.IdfCorpusParams(corpus=_filter(ask.among)) if ask.among else None
    params = models.SearchParams(exact=ask.exact, idf=idf) if idf or ask.exact else None
    return models.QueryRequest(query=near, using=using, filter=_filter(ask.scope), limit=ask.limit, params=params)


def _document(text: RemoteText) -> models.Document:
    return models.Document(text=text.text, model=text.model)


def _sparse(terms: SparseTerms) -> models.SparseVector:
    return models.SparseVector(indices=terms.numbers, values=terms.weights)


def _filter(scope: Scope) -> models.Filter:
    must: list[Any] = [_matches("tenant", scope.tenant_id)]
    if scope.collections is not None:
        must.append(models.FieldCondition(key="collection", match=models.MatchAny(any=list(scope.collections))))
    if scope.document is not None:
        must.append(_matches("document", scope.document))
    if scope.kind is not None:
        must.append(_matches("kind", scope.kind))
    must += [_matches("tags", tag) for tag in scope.tags]
    if scope.ids is not None:
        must.append(models.HasIdCondition(has_id=list(scope.ids)))
    if scope.before is not None:
        must.append(models.FieldCondition(key="version", range=models.Range(lt=scope.before)))
    others: list[Any] = []
    if scope.without:
        others.append(models.FieldCondition(key="document", match=models.MatchAny(any=list(scope.without))))
    return models.Filter(must=must, must_not=others or None)


def _matches(field: str, value: str) -> models.FieldCondition:
    return models.FieldCondition(key=field, match=models.MatchValue(value=value))
