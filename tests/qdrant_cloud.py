"""Qdrant Cloud on loopback: what is asked of it over HTTP, answered by a test or by points whose texts it takes."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Answer = tuple[int, Any]


@contextmanager
def serving(answer: Callable[[str, str, Any], Answer]) -> Iterator[str]:
    """A server that answers as `answer` says, from method, path and body."""

    class Handler(BaseHTTPRequestHandler):
        def handle_any(self) -> None:
            raw = self.rfile.read(int(self.headers.get("content-length", 0)))
            status, body = answer(self.command, self.path.partition("?")[0], json.loads(raw) if raw else None)
            sent = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        do_GET = do_PUT = do_POST = handle_any  # noqa: N815 - the names that http.server calls

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def described(metadata: dict[str, Any]) -> dict[str, Any]:
    """A collection that was made with this metadata, as a server describes it."""
    hnsw = {"m": 16, "ef_construct": 100, "full_scan_threshold": 10_000}
    optimizer = {
        "deleted_threshold": 0.2,
        "vacuum_min_vector_number": 1000,
        "default_segment_number": 0,
        "flush_interval_sec": 5,
    }
    config = {"params": {}, "hnsw_config": hnsw, "optimizer_config": optimizer, "metadata": metadata}
    return {"status": "green", "optimizer_status": "ok", "segments_count": 1, "config": config, "payload_schema": {}}


class Cloud:
    """Keeps points, and does not look at their texts: all that a filter lets through are equally near."""

    def __init__(self) -> None:
        self._made: dict[str, dict[str, Any]] = {}
        self._points: dict[str, dict[str, dict[str, Any]]] = {}
        self._one_at_a_time = threading.Lock()

    def __call__(self, method: str, path: str, body: Any) -> Answer:
        """Answer one request."""
        if path == "/":
            return 200, {"title": "qdrant", "version": "1.19.0"}
        with self._one_at_a_time:
            return 200, {"result": self._done(method, *path.strip("/").split("/")[1:], body=body)}

    def _done(self, method: str, collection: str, *rest: str, body: Any) -> Any:
        points = self._points.setdefault(collection, {})
        match method, *rest:
            case ["GET"]:
                return described(self._made[collection])
            case ["GET", "exists"]:
                return {"exists": collection in self._made}
            case ["PUT"]:
                self._made[collection] = body["metadata"]
                return True
            case ["PUT", "points"]:
                _keep(points, body)
            case ["POST", "points", "delete"]:
                for id_ in _found(points, body["filter"]):
                    del points[id_]
            case ["POST", *reading]:
                return _read(points, reading, body)
        return {"operation_id": 1, "status": "completed"}


def _keep(points: dict[str, dict[str, Any]], body: dict[str, Any]) -> None:
    replaced = body.get("update_filter")
    for point in body["points"]:
        if point["id"] not in points or replaced is None or _passes(points[point["id"]], replaced):
            points[point["id"]] = point


def _read(points: dict[str, dict[str, Any]], reading: list[str], body: dict[str, Any]) -> Any:
    match reading:
        case ["points"]:
            return [_shown(points[id_], body.get("with_vector") or []) for id_ in body["ids"] if id_ in points]
        case ["points", "count"]:
            return {"count": len(_found(points, body["filter"]))}
        case ["points", "query", "batch"]:
            return [{"points": _near(points, search)} for search in body["searches"]]
    raise ValueError(f"not known here: {reading}")


def _shown(point: dict[str, Any], vectors: list[str]) -> dict[str, Any]:
    return point | {"vector": {name: vector for name, vector in point["vector"].items() if name in vectors}}


def _found(points: dict[str, dict[str, Any]], wanted: dict[str, Any]) -> list[str]:
    return [id_ for id_, point in points.items() if _passes(point, wanted)]


def _near(points: dict[str, dict[str, Any]], search: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"id": id_, "version": 1, "score": 0.9} for id_ in _found(points, search["filter"])[: search["limit"]]]


def _passes(point: dict[str, Any], wanted: dict[str, Any]) -> bool:
    return all(_meets(point, condition) for condition in wanted["must"])


def _meets(point: dict[str, Any], condition: dict[str, Any]) -> bool:
    match condition:
        case {"has_id": ids}:
            return point["id"] in ids
        case {"key": key, "range": bounds}:
            value = point["payload"][key]
            return bool(value < bounds.get("lt", value + 1) and value <= bounds.get("lte", value))
        case {"key": key, "match": {"any": values}}:
            return point["payload"].get(key) in values
        case {"key": key, "match": {"value": value}}:
            held = point["payload"].get(key)
            return value in held if isinstance(held, list) else bool(held == value)
    raise ValueError(f"not known here: {condition}")
