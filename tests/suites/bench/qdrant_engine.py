"""The double of a Qdrant server with Qdrant's own engine, for whole data sets: its graphs, quantization and scoring."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import qdrant_edge as edge

from tests.helpers.qdrant_server import QdrantServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

VERSION: Final = "1.20.0"


class QdrantEngineServer(QdrantServer):
    """A server whose points are in shards of the engine."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._shards: dict[str, edge.EdgeShard] = {}
        super().__init__(VERSION)

    def optimize(self) -> None:
        """Build graphs and quantized vectors, as a server does in the background."""
        for shard in self._shards.values():
            shard.flush()
            shard.optimize()

    def _done(self, method: str, collection: str, rest: str, body: dict[str, Any]) -> Any:
        if rest.startswith("/points"):
            return self._done_to_points(method, collection, rest.removeprefix("/points"), body)
        result = super()._done(method, collection, rest, body)
        if (method, rest) == ("PUT", ""):
            folder = self._folder / collection
            folder.mkdir()
            self._shards[collection] = edge.EdgeShard.create(str(folder), _config(body))
        if (method, rest) == ("PUT", "/index"):
            operation = edge.UpdateOperation.create_field_index(body["field_name"], _field_schema(body["field_schema"]))
            self._shards[collection].update(operation)
        return result

    def _done_to_points(self, method: str, collection: str, rest: str, body: dict[str, Any]) -> Any:
        shard = self._shards[collection]
        match method, rest:
            case "PUT", "":
                points = [edge.Point(each["id"], _vectors(each["vector"]), each["payload"]) for each in body["points"]]
                shard.update(edge.UpdateOperation.upsert_points(points, _filter(body["update_filter"])))
            case "POST", "":
                records = shard.retrieve(body["ids"], with_payload=_payload(body), with_vector=body["with_vector"])
                return [_record(each) for each in records]
            case "POST", "/delete":
                shard.update(edge.UpdateOperation.delete_points_by_filter(_filter(body["filter"])))
            case "POST", "/count":
                return {"count": shard.count(edge.CountRequest(filter=_filter(body["filter"]), exact=True))}
            case "POST", "/query/batch":
                found = shard.query_batch(edge.QueryBatchRequest([_request(each) for each in body["searches"]]))
                return [{"points": [{"id": str(each.id), "score": each.score} for each in points]} for points in found]
            case _:
                raise AssertionError(f"{method} {rest} is not known here")
        return {"operation_id": 1, "status": "completed"}


@contextmanager
def running_engine(folder: Path) -> Iterator[QdrantEngineServer]:
    """Yield a running server with its points in `folder`."""
    server = QdrantEngineServer(folder)
    try:
        yield server
    finally:
        server.stop()


def _config(settings: dict[str, Any]) -> edge.EdgeConfig:
    return edge.EdgeConfig(
        vectors={name: _dense(each) for name, each in settings["vectors"].items()},
        sparse_vectors={
            name: edge.EdgeSparseVectorParams(modifier=edge.Modifier.Idf) for name in settings["sparse_vectors"]
        },
    )


def _dense(settings: dict[str, Any]) -> edge.EdgeVectorParams:
    graph, quantization = settings["hnsw_config"], settings.get("quantization_config")
    assert settings["distance"] == "Cosine"
    scalar = quantization and edge.ScalarQuantizationConfig(
        edge.ScalarType.Int8, quantile=quantization["scalar"]["quantile"], always_ram=True
    )
    return edge.EdgeVectorParams(
        settings["size"],
        edge.Distance.Cosine,
        hnsw_config=edge.HnswIndexConfig(
            m=graph["m"], ef_construct=100, full_scan_threshold=10_000, payload_m=graph.get("payload_m")
        ),
        multivector_config=edge.MultiVectorConfig(edge.MultiVectorComparator.MaxSim)
        if "multivector_config" in settings
        else None,
        datatype=getattr(edge.VectorStorageDatatype, settings.get("datatype", "float32").capitalize()),
        quantization_config=scalar,
        on_disk=settings["on_disk"],
    )


def _field_schema(schema: dict[str, Any] | str) -> Any:
    if isinstance(schema, dict):
        return edge.KeywordIndexParams(is_tenant=schema["is_tenant"])
    return getattr(edge.PayloadSchemaType, schema.capitalize())


def _vectors(vectors: dict[str, Any]) -> dict[str, Any]:
    return {name: _near(each) for name, each in vectors.items()}


def _near(vector: Any) -> Any:
    return edge.SparseVector(vector["indices"], vector["values"]) if isinstance(vector, dict) else vector


def _request(search: dict[str, Any]) -> edge.QueryRequest:
    params = search.get("params", {})
    unknown = params.keys() - {"exact", "idf", "quantization"}
    assert not unknown, unknown
    corpus, quantization = params.get("idf", {}).get("corpus"), params.get("quantization")
    return edge.QueryRequest(
        limit=search["limit"],
        query=edge.Query.Nearest(_near(search["query"]["nearest"]), search["using"]),
        filter=_filter(search["filter"]),
        params=edge.SearchParams(
            exact=params.get("exact", False),
            idf=edge.IdfParams(_filter(corpus)) if corpus else None,
            quantization=edge.QuantizationSearchParams(**quantization) if quantization else None,
        ),
    )


def _filter(condition: dict[str, Any]) -> edge.Filter:
    must = [_condition(each) for each in condition["must"]]
    return edge.Filter(must=must, must_not=[_condition(each) for each in condition.get("must_not", [])] or None)


def _condition(condition: dict[str, Any]) -> Any:
    match condition:
        case {"has_id": ids}:
            return edge.HasIdCondition(set(ids))
        case {"key": key, "match": {"value": value}}:
            return edge.FieldCondition(key, match=edge.MatchValue(value))
        case {"key": key, "match": {"any": values}}:
            return edge.FieldCondition(key, match=edge.MatchAny(values))
        case {"key": key, "range": bounds}:
            return edge.FieldCondition(key, range=edge.RangeFloat(**bounds))
    raise AssertionError(f"{condition} is not known here")


def _payload(body: dict[str, Any]) -> Any:
    fields = body["with_payload"]
    return fields if isinstance(fields, bool) else edge.PayloadSelector.Include(fields)


def _record(record: Any) -> dict[str, Any]:
    sparse = {name: {"indices": each.indices, "values": each.values} for name, each in (record.vector or {}).items()}
    return {"id": str(record.id), "payload": record.payload, "vector": sparse}
