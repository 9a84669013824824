"""Qdrant Cloud on loopback: what is asked of it over HTTP, answered by a test or by points whose texts it takes."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from shared.knowledge.embedding.spaces import Space

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


def described(space: Space) -> dict[str, Any]:
    """A collection for passages of `space`, as a server describes it."""
    hnsw = {"m": 16, "ef_construct": 100, "full_scan_threshold": 10_000}
    optimizer = {
        "deleted_threshold": 0.2,
        "vacuum_min_vector_number": 1000,
        "default_segment_number": 0,
        "flush_interval_sec": 5,
    }
    config = {"params": {}, "hnsw_config": hnsw, "optimizer_config": optimizer, "metadata": space.record()}
    return {"status": "green", "optimizer_status": "ok", "segments_count": 1, "config": config, "payload_schema": {}}


class Points:
    """One collection that keeps payloads and vectors; every point of a search's filter is equally near."""

    def __init__(self, space: Space) -> None:
        self._space = space
        self._points: dict[str, dict[str, Any]] = {}
        self._one_at_a_time = threading.Lock()

    def __call__(self, method: str, path: str, body: Any) -> Answer:
        """Answer one request."""
        with self._one_at_a_time:
            match [method, *path.strip("/").split("/")[2:]]:
                case ["GET"]:
                    described_so = {"title": "qdrant", "version": "1.19.0"} if path == "/" else None
                    return 200, described_so or {"result": described(self._space)}
                case ["GET", "exists"]:
                    return 200, {"result": {"exists": True}}
                case ["PUT", "points"]:
                    self._keep(body["points"], body.get("update_filter"))
                    return 200, {"result": {"operation_id": 1, "status": "completed"}}
                case ["POST", "points", "delete"]:
                    for id_ in self._found(body["filter"]):
                        del self._points[id_]
                    return 200, {"result": {"operation_id": 1, "status": "completed"}}
                case ["POST", "points"]:
                    return 200, {"result": [self._points[id_] for id_ in body["ids"] if id_ in self._points]}
                case ["POST", "points", "count"]:
                    return 200, {"result": {"count": len(self._found(body.get("filter")))}}
                case ["POST", "points", "query", "batch"]:
                    return 200, {"result": [{"points": self._near(each)} for each in body["searches"]]}
        return 404, {"status": {"error": f"unknown: {method} {path}"}}

    def _keep(self, points: list[dict[str, Any]], replaced: Any) -> None:
        for point in points:
            there = self._points.get(point["id"])
            if there is None or replaced is None or _passes(there, replaced):
                self._points[point["id"]] = {"id": point["id"], "payload": point["payload"], "vector": point["vector"]}

    def _found(self, wanted: Any) -> list[str]:
        return [id_ for id_, point in self._points.items() if wanted is None or _passes(point, wanted)]

    def _near(self, asked: dict[str, Any]) -> list[dict[str, Any]]:
        found = self._found(asked.get("filter"))[: asked["limit"]]
        return [{"id": id_, "version": 1, "score": 0.9} for id_ in found]


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
