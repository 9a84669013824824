"""The part of Qdrant's REST API that Kho uses, over the client's own engine. It can stop, hang and refuse requests."""

from __future__ import annotations

import json
import re
import threading
import time
import warnings
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, TypeAdapter
from qdrant_client import QdrantClient, models

from shared.search.store import MEANING

if TYPE_CHECKING:
    from collections.abc import Iterator

_PATH: Final = re.compile(r"/collections/(?P<collection>[^/]+)(?P<rest>/.*)?")


class QdrantServer:
    """A server that keeps its points while stopped, as on disk.

    It accepts texts instead of vectors, as Qdrant Cloud does, but ignores them: all are equally near.
    """

    def __init__(self, version: str) -> None:
        self._version = version
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # local mode warns about large collections
            self._client = QdrantClient(":memory:")
        self._lock = threading.Lock()
        self._answering = threading.Event()
        self._answering.set()
        self.indexed: dict[str, dict[str, Any]] = {}
        """The payload fields that each collection was asked to index."""
        self.keys: set[str] = set()
        self.revoked_keys: set[str] = set()
        """The API keys that callers sent."""
        self.asked: dict[str, Any] = {}
        """The last request body, by method and path."""
        self.refusal: int | None = None
        """The status of every response except the version's."""
        self._server: ThreadingHTTPServer | None = None
        self.port = 0
        self.start()

    @property
    def url(self) -> str:
        """Return the server's URL, whether it listens or not."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Listen, always at the same port."""
        qdrant = self

        class Handler(BaseHTTPRequestHandler):
            def handle_any(self) -> None:
                raw = self.rfile.read(int(self.headers.get("content-length", 0)))
                key = self.headers.get("authorization", "").removeprefix("Bearer ")
                qdrant.keys.add(key)
                qdrant._answering.wait()
                status, body = qdrant._answer(self.command, self.path.partition("?")[0], json.loads(raw or b"{}"))
                if key in qdrant.revoked_keys:
                    status, body = 401, {"status": {"error": "no"}}
                sent = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(sent)))
                self.end_headers()
                self.wfile.write(sent)

            do_GET = do_PUT = do_POST = do_PATCH = do_DELETE = handle_any  # noqa: N815 - the names that http.server calls

            def log_message(self, *_: Any) -> None:
                pass

        class Listening(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: Any) -> None:
                """Ignore clients that have disconnected meanwhile."""

        self._server = Listening(("127.0.0.1", self.port), Handler)
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, args=[0.02], daemon=True).start()

    def stop(self) -> None:
        """Stop listening: connections are refused."""
        if self._server:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def hang(self) -> None:
        """Accept requests and answer none of them."""
        self._answering.clear()

    def wake(self) -> None:
        """Answer again, including the requests received meanwhile."""
        self._answering.set()

    def create_foreign(self, name: str) -> None:
        """Create a collection as other software would."""
        with self._lock:
            self._client.create_collection(name, vectors_config={})

    def count(self, **payload: str) -> int:
        """Return the number of points that have this payload."""
        must: Any = [models.FieldCondition(key=key, match=models.MatchValue(value=it)) for key, it in payload.items()]
        with self._lock:
            names = [each.name for each in self._client.get_collections().collections]
            return sum(self._client.count(name, models.Filter(must=must)).count for name in names)

    def _answer(self, method: str, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        if path == "/":
            return 200, {"title": "qdrant", "version": self._version}
        self.asked[f"{method} {path}"] = body
        if self.refusal:
            return self.refusal, {"status": {"error": "no"}}
        match = _PATH.fullmatch(path)
        assert match, path
        started = time.monotonic()
        with self._lock, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                result = self._done(method, match["collection"], match["rest"] or "", body)
            except ValueError as error:
                return (404 if "not found" in str(error) else 409), {"status": {"error": str(error)}}
        return 200, {"result": _plain(result), "status": "ok", "time": time.monotonic() - started}

    def _done(self, method: str, collection: str, rest: str, body: dict[str, Any]) -> Any:
        client = self._client
        match method, rest:
            case "GET", "/exists":
                return {"exists": client.collection_exists(collection)}
            case "GET", "":
                return _plain(client.get_collection(collection)) | {"payload_schema": self.indexed.get(collection, {})}
            case "PUT", "":
                request = models.CreateCollection.model_validate(body)
                return client.create_collection(
                    collection,
                    vectors_config=request.vectors,
                    sparse_vectors_config=request.sparse_vectors,
                    metadata=request.metadata,
                )
            case "PATCH", "":
                metadata = models.UpdateCollection.model_validate(body).metadata
                return client.update_collection(collection, metadata=metadata)
            case "PUT", "/index":
                schema = body["field_schema"]
                params = schema if isinstance(schema, dict) else {"type": schema}
                known = {"data_type": params["type"], "params": params, "points": 0}
                self.indexed.setdefault(collection, {})[body["field_name"]] = known
                return {"operation_id": 1, "status": "completed"}
        return self._done_to_points(method, collection, rest.removeprefix("/points"), body)

    def _done_to_points(self, method: str, collection: str, rest: str, body: dict[str, Any]) -> Any:
        client = self._client
        condition = models.Filter.model_validate(body["filter"]) if body.get("filter") else None
        match method, rest:
            case "PUT", "":
                points = TypeAdapter(list[models.PointStruct]).validate_python(body["points"])
                for point in points:
                    assert isinstance(point.vector, dict)
                    point.vector = {name: self._inferred(collection, it) for name, it in point.vector.items()}
                replaced = models.Filter.model_validate(body["update_filter"]) if body.get("update_filter") else None
                return client.upsert(collection, points, update_filter=replaced)
            case "POST", "":
                vectors = body.get("with_vector") or False
                return client.retrieve(collection, body["ids"], body["with_payload"], with_vectors=vectors)
            case "POST", "/payload":
                return client.set_payload(collection, body["payload"], condition or models.Filter())
            case "POST", "/delete":
                return client.delete(collection, models.FilterSelector.model_validate(body))
            case "POST", "/count":
                return client.count(collection, condition, exact=True)
            case "POST", "/scroll":
                limit, fields = body["limit"], body["with_payload"]
                order = models.OrderBy.model_validate(body["order_by"]) if "order_by" in body else None
                records, more = client.scroll(
                    collection, condition, limit, order, offset=body.get("offset"), with_payload=fields
                )
                return {"points": records, "next_page_offset": more}
            case "POST", "/query/batch":
                searches = TypeAdapter(list[models.QueryRequest]).validate_python(body["searches"])
                for search in searches:
                    assert isinstance(search.query, models.NearestQuery)
                    search.query.nearest = self._inferred(collection, search.query.nearest)
                return client.query_batch_points(collection, searches)
        raise AssertionError(f"{method} {rest} is not known here")

    def _inferred(self, collection: str, given: Any) -> Any:
        if not isinstance(given, models.Document):
            return given
        vectors = self._client.get_collection(collection).config.params.vectors
        assert isinstance(vectors, dict)
        return [1.0] * vectors[MEANING].size


@contextmanager
def running_qdrant(version: str = "1.20.0") -> Iterator[QdrantServer]:
    """Yield a running server."""
    qdrant = QdrantServer(version)
    try:
        yield qdrant
    finally:
        qdrant.wake()
        qdrant.stop()


def _plain(result: Any) -> Any:
    if isinstance(result, BaseModel):
        return result.model_dump(mode="json", exclude_none=True)
    if isinstance(result, list):
        return [_plain(each) for each in result]
    if isinstance(result, dict):
        return {name: _plain(each) for name, each in result.items()}
    return result
