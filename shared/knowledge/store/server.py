"""Vector store on Qdrant Cloud or any Qdrant server."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from qdrant_client import QdrantClient, models
from qdrant_client.common.client_exceptions import QdrantException
from qdrant_client.http.exceptions import ApiException, UnexpectedResponse

from shared.aws.secrets_manager import forget_secrets, get_secret
from shared.config import ConfigurationError
from shared.knowledge.bm25 import SparseTerms
from shared.knowledge.embedding import RemoteText
from shared.knowledge.store import DOCUMENT_FIELDS, KEYWORDS, MEANING, PARTS, TERMS, VectorStore
from shared.rpc.errors import Unavailable
from shared.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Sequence

    from shared.knowledge.embedding.models import Space
    from shared.knowledge.store import Point, Scope, VectorQuery

_GRAPH_LINKS: Final = 16
_SECONDS: Final = 5
_BATCH: Final = 64
_PAGE: Final = 1_000
_CONFLICT: Final = 409
_UNAUTHORIZED: Final = (401, 403)
_MIN_VERSION: Final = [1, 19]

Response = TypeVar("Response")


def connect(space: Space, url: str, collection: str) -> QdrantServerStore:
    """Return a collection of a server. It is created at the first use. Each request has the current key."""
    key = partial(get_secret, "KHO_QDRANT_KEY")
    client = QdrantClient(
        url=url,
        auth_token_provider=key if key() else None,
        timeout=_SECONDS,
        cloud_inference=True,
        check_compatibility=False,
    )
    version = _call(client.info).version
    if [int(part) for part in version.split("-")[0].split(".")[:2]] < _MIN_VERSION:
        # An older server silently ignores the corpus for counting rarity.
        raise ConfigurationError(f"Qdrant {version} at {url} is too old; 1.19 or newer is needed")
    return QdrantServerStore(client, collection, space)


class QdrantServerStore(VectorStore):
    """One collection of a server, shared by all tenants."""

    def __init__(self, client: QdrantClient, collection: str, space: Space) -> None:
        self._client = client
        self._collection = collection
        if not _exists(client, collection):
            _create(client, collection, space)
        info = _call(lambda: client.get_collection(collection))
        if not info.config.metadata:
            raise ConfigurationError(f"the Qdrant collection '{collection}' is not a knowledge index; name another")
        space.require(info.config.metadata)
        # The creator may have been killed before it created all indexes.
        _index_fields(client, collection, info.payload_schema)

    def write(self, points: Sequence[Point], version: int) -> None:
        """Upsert `points` at `version`, skipping ids stored at a newer version."""
        not_newer = models.Filter(must=[models.FieldCondition(key="version", range=models.Range(lte=version))])
        for start in range(0, len(points), _BATCH):
            batch = [_point_struct(point) for point in points[start : start + _BATCH]]
            _call(partial(self._client.upsert, self._collection, batch, wait=True, update_filter=not_newer))

    def erase(self, scope: Scope) -> None:
        """Delete the points of `scope`."""
        selector = models.FilterSelector(filter=_filter(scope))
        _call(lambda: self._client.delete(self._collection, selector, wait=True))

    def count(self, scope: Scope) -> int:
        """Return the number of points in `scope`."""
        return _call(lambda: self._client.count(self._collection, _filter(scope), exact=True)).count

    def _retrieve(
        self, ids: Sequence[str], *, payload: Sequence[str] | bool, vectors: Sequence[str] = ()
    ) -> Sequence[Any]:
        fields = payload if isinstance(payload, bool) else list(payload)
        retrieve = partial(self._client.retrieve, self._collection, list(ids), with_payload=fields)
        return _call(partial(retrieve, with_vectors=list(vectors) or False))

    def _scroll(self, scope: Scope | None, offset: Any) -> tuple[Sequence[Any], Any]:
        condition = _filter(scope) if scope else None
        scroll = partial(self._client.scroll, self._collection, condition, _PAGE, offset=offset)
        return _call(partial(scroll, with_payload=list(DOCUMENT_FIELDS)))

    def _query(self, queries: Sequence[VectorQuery]) -> Iterable[Iterable[Any]]:
        requests = [_request(query) for query in queries]
        responses = _call(lambda: self._client.query_batch_points(self._collection, requests))
        return (response.points for response in responses)

    def close(self) -> None:
        """Close the store. Everything written is kept."""
        self._client.close()


def _exists(client: QdrantClient, collection: str) -> bool:
    try:
        return _call(lambda: client.collection_exists(collection))
    except UnexpectedResponse as error:
        if error.status_code not in _UNAUTHORIZED:
            raise
        raise ConfigurationError("Qdrant rejects the key in KHO_QDRANT_KEY, or requires one") from None


def _call(call: Callable[[], Response]) -> Response:
    try:
        try:
            return call()
        except UnexpectedResponse as error:
            if error.status_code not in _UNAUTHORIZED:
                raise
            forget_secrets()
            return call()  # with the key that is current now
    except UnexpectedResponse as error:
        # A client error is our own defect or a wrong key. Only transient failures become `Unavailable`.
        if error.status_code is not None and error.status_code < 500 and error.status_code != 429:
            raise
        logger.warning("vector store", extra={"failure": f"status {error.status_code}"})
    except (ApiException, QdrantException) as error:
        logger.warning("vector store", extra={"failure": type(error).__name__})
    raise Unavailable("The vector store is not answering.")


def _create(client: QdrantClient, collection: str, space: Space) -> None:
    # Every search is one tenant's: graph links connect the tenant's own points (payload_m), none across tenants (m).
    tenant_links = models.HnswConfigDiff(m=0, payload_m=_GRAPH_LINKS)
    # One byte per dimension is kept in memory; hits are rescored with the vectors on disk.
    quantization = models.ScalarQuantization(
        scalar=models.ScalarQuantizationConfig(type=models.ScalarType.INT8, quantile=0.99, always_ram=True)
    )
    vectors = {
        MEANING: models.VectorParams(
            size=space.dimensions,
            distance=models.Distance.COSINE,
            hnsw_config=tenant_links,
            quantization_config=quantization,
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
        _call(
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
        # Another function created it at the same moment.


def _index_fields(client: QdrantClient, collection: str, indexed: Container[str]) -> None:
    tenant = models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True)
    keywords: dict[str, Any] = dict.fromkeys(KEYWORDS, models.PayloadSchemaType.KEYWORD)
    for field, schema in ({"tenant": tenant} | keywords | {"version": models.PayloadSchemaType.INTEGER}).items():
        if field not in indexed:
            _call(partial(client.create_payload_index, collection, field, schema))


def _point_struct(point: Point) -> models.PointStruct:
    vectors: dict[str, Any] = {}
    if point.meaning:
        vectors[MEANING] = _document(point.meaning) if isinstance(point.meaning, RemoteText) else point.meaning
    if point.parts:
        vectors[PARTS] = point.parts
    if point.terms and point.terms.numbers:
        vectors[TERMS] = _sparse(point.terms)
    return models.PointStruct(id=point.id, payload=point.payload, vector=vectors)


def _request(query: VectorQuery) -> models.QueryRequest:
    near: Any = query.near
    using = MEANING
    if isinstance(query.near, RemoteText):
        near = _document(query.near)
    elif isinstance(query.near, SparseTerms):
        near, using = _sparse(query.near), TERMS
    elif isinstance(query.near[0], list):
        using = PARTS
    idf = models.IdfCorpusParams(corpus=_filter(query.corpus)) if query.corpus else None
    params = models.SearchParams(exact=query.exact, idf=idf) if idf or query.exact else None
    return models.QueryRequest(query=near, using=using, filter=_filter(query.scope), limit=query.limit, params=params)


def _document(text: RemoteText) -> models.Document:
    return models.Document(text=text.text, model=text.model)


def _sparse(terms: SparseTerms) -> models.SparseVector:
    return models.SparseVector(indices=terms.numbers, values=terms.weights)


def _filter(scope: Scope) -> models.Filter:
    must: list[Any] = [
        models.FieldCondition(key=name, match=models.MatchValue(value=value)) for name, value in scope.required_values
    ]
    if scope.collections is not None:
        must.append(models.FieldCondition(key="collection", match=models.MatchAny(any=list(scope.collections))))
    if scope.ids is not None:
        must.append(models.HasIdCondition(has_id=list(scope.ids)))
    if scope.before_version is not None:
        must.append(models.FieldCondition(key="version", range=models.Range(lt=scope.before_version)))
    others: list[Any] = []
    if scope.excluded_documents:
        others.append(models.FieldCondition(key="document", match=models.MatchAny(any=list(scope.excluded_documents))))
    return models.Filter(must=must, must_not=others or None)
