"""Qdrant's REST protocol: the requests to one collection of a server.

Queries must not wait for a client library: importing qdrant-client takes 0.6 s of processor time (docs/decisions.md).
"""

from __future__ import annotations

import json
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote

from shared.aws.secrets_manager import forget_secrets, get_secret
from shared.platform.config import ConfigurationError
from shared.platform.http import ConnectionFailed, ConnectionNotEstablished, HttpClient, ResponseTimeout
from shared.platform.telemetry import logger
from shared.rpc.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SECONDS: Final = 5.0
_UNAUTHORIZED: Final = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)

Json = dict[str, Any]


class QdrantError(Exception):
    """Qdrant rejects a request as invalid: a defect of ours, or a collection in another state than expected."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(f"Qdrant answered {status}: {reason}")
        self.status = status


class SparseValues(NamedTuple):
    """A stored sparse vector."""

    indices: list[int]
    values: list[float]


class Record(NamedTuple):
    """A stored point, with the requested fields of its payload and the requested sparse vectors."""

    id: str
    payload: Json
    vector: dict[str, SparseValues]


class ScoredPoint(NamedTuple):
    """A point that a query found."""

    id: str
    score: float


class CollectionInfo(NamedTuple):
    """The state of a collection: its metadata, and the payload fields that are indexed."""

    metadata: Json
    indexed: frozenset[str]


class QdrantCollection:
    """One collection of a server. Every request may be repeated, and has the key that is current."""

    def __init__(self, url: str, name: str) -> None:
        base, _, path = url.rstrip("/").partition("://")
        host, _, prefix = path.partition("/")
        self._http = HttpClient(f"{base}://{host}", connect_seconds=_SECONDS, read_seconds=_SECONDS)
        self._root = f"/{prefix}" if prefix else ""
        self._path = f"{self._root}/collections/{quote(name, safe='')}"
        self._key = partial(get_secret, "KHO_QDRANT_KEY")

    def server_version(self) -> str:
        """Return the server's version."""
        version: str = self._send("GET", self._root or "/", None)["version"]
        return version

    def info(self) -> CollectionInfo | None:
        """Return the state of the collection, or None if it does not exist."""
        try:
            result = self._request("GET", "")
        except QdrantError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return None
            raise
        return CollectionInfo(result["config"].get("metadata") or {}, frozenset(result.get("payload_schema") or ()))

    def create(self, settings: Json) -> None:
        """Create the collection, unless it exists."""
        try:
            self._request("PUT", "", settings)
        except QdrantError as error:
            if error.status != HTTPStatus.CONFLICT:
                raise

    def record(self, metadata: Json) -> None:
        """Add to the collection's metadata."""
        self._request("PATCH", "", {"metadata": metadata})

    def index_field(self, field: str, schema: Json | str) -> None:
        """Index a field of the payloads."""
        self._request("PUT", "/index?wait=true", {"field_name": field, "field_schema": schema})

    def upsert(self, points: Sequence[Json], update_filter: Json) -> None:
        """Write points, replacing only stored ones that match the filter."""
        self._request("PUT", "/points?wait=true", {"points": points, "update_filter": update_filter})

    def set_payload(self, fields: Json, condition: Json) -> None:
        """Set fields of the payloads of the points that match a filter."""
        self._request("POST", "/points/payload?wait=true", {"payload": fields, "filter": condition})

    def delete(self, condition: Json) -> None:
        """Delete the points that match a filter."""
        self._request("POST", "/points/delete?wait=true", {"filter": condition})

    def count(self, condition: Json) -> int:
        """Return the number of points that match a filter."""
        count: int = self._request("POST", "/points/count", {"filter": condition, "exact": True})["count"]
        return count

    def retrieve(self, ids: Sequence[str], *, payload: Sequence[str] | bool, vectors: Sequence[str]) -> list[Record]:
        """Return the stored points of these ids."""
        with_vector: Any = list(vectors) or False
        body = {"ids": list(ids), "with_payload": payload, "with_vector": with_vector}
        return [_record(each) for each in self._request("POST", "/points", body)]

    def scroll(
        self, condition: Json | None, fields: Sequence[str], limit: int, offset: Any
    ) -> tuple[list[Record], Any]:
        """Return a page of points, and the offset of the next page."""
        body = {"limit": limit, "with_payload": list(fields), "with_vector": False}
        body |= {"filter": condition} if condition else {}
        body |= {"offset": offset} if offset is not None else {}
        result = self._request("POST", "/points/scroll", body)
        return [_record(each) for each in result["points"]], result.get("next_page_offset")

    def scroll_latest(self, condition: Json, field: str, limit: int) -> list[Record]:
        """Return the points with the greatest values of a field of integers, the greatest first."""
        order = {"key": field, "direction": "desc"}
        body = {"limit": limit, "with_payload": True, "with_vector": False, "filter": condition, "order_by": order}
        return [_record(each) for each in self._request("POST", "/points/scroll", body)["points"]]

    def query(self, searches: Sequence[Json]) -> list[list[ScoredPoint]]:
        """Return the points that each search found, best first."""
        results = self._request("POST", "/points/query/batch", {"searches": searches})
        return [[ScoredPoint(str(each["id"]), each["score"]) for each in result["points"]] for result in results]

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def _request(self, method: str, target: str, body: Json | None = None) -> Any:
        return self._send(method, self._path + target, body)["result"]

    def _send(self, method: str, target: str, body: Json | None) -> Json:
        content = b"" if body is None else json.dumps(body, separators=(",", ":")).encode()
        status, answer = self._exchange(method, target, content)
        if status in _UNAUTHORIZED:
            forget_secrets()
            status, answer = self._exchange(method, target, content)  # with the key that is current now
        if status in _UNAUTHORIZED:
            raise ConfigurationError("Qdrant rejects the key in KHO_QDRANT_KEY, or requires one")
        if status == HTTPStatus.TOO_MANY_REQUESTS or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise _unavailable(f"status {status}")
        if status >= HTTPStatus.BAD_REQUEST:
            raise QdrantError(status, answer[:500].decode(errors="replace"))
        try:
            parsed: Json = json.loads(answer)
        except ValueError:
            raise _unavailable(f"no JSON with status {status}") from None
        return parsed

    def _exchange(self, method: str, target: str, content: bytes) -> tuple[int, bytes]:
        key = self._key()
        headers = {"host": self._http.authority, "content-type": "application/json"}
        headers |= {"authorization": f"Bearer {key}"} if key else {}
        try:
            try:
                status, _, answer = self._http.send(method, target, headers, content)
            except (ConnectionNotEstablished, ResponseTimeout):
                raise
            except ConnectionFailed:  # the server had closed the connection meanwhile
                status, _, answer = self._http.send(method, target, headers, content)
        except ConnectionFailed as error:
            raise _unavailable(str(error)) from None
        return status, answer


def _record(point: Mapping[str, Any]) -> Record:
    vectors = point.get("vector") or {}
    sparse = {name: SparseValues(each["indices"], each["values"]) for name, each in vectors.items()}
    return Record(str(point["id"]), point.get("payload") or {}, sparse)


def _unavailable(failure: str) -> Unavailable:
    logger.warning("vector store", extra={"failure": failure})
    return Unavailable("The vector store is not answering.")
