"""The answers to calls whose worker has died, from what it has noted of the requests."""

from __future__ import annotations

from http import HTTPStatus
from urllib.parse import unquote

from api.http_events import HttpRequest, error_response
from shared.platform.telemetry import correlation_id_from
from shared.rpc.errors import KhoError, OutOfTime, Unavailable


def lost_response(note: bytes, *, has_begun: bool) -> bytes:
    """Return the HTTP response in the format of the request's endpoint. The connection ends after it."""
    request = _request(note)
    server = request.path.removeprefix("/").partition("/")[0]
    event = error_response(request, _lost(has_begun=has_begun), server).to_event(request.correlation_id)
    status = HTTPStatus(event["statusCode"])
    body: bytes = event["body"].encode()
    headers = {**event["headers"], "content-length": len(body), "connection": "close"}
    head = [f"HTTP/1.1 {status} {status.phrase}", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*head, "", ""]).encode("latin-1") + body


def summary(note: bytes) -> str:
    """Return the verb and path of the request."""
    request = _request(note)
    return f"{request.method} {request.path}"


def _lost(*, has_begun: bool) -> KhoError:
    if has_begun:
        return OutOfTime("The process that ran this call ended before it answered.")
    return Unavailable(
        "The process that had this call ended before it began; nothing was done.", guidance="Call again."
    )


def _request(note: bytes) -> HttpRequest:
    head, _, body = note.partition(b"\n\n")
    start, *lines = head.decode("latin-1").split("\n")
    method, _, path = start.partition(" ")
    headers = dict(line.split(": ", 1) for line in lines)
    return HttpRequest(
        path=unquote(path),
        path_parameters={},
        headers=headers,
        body=body,
        source_ip="",
        authorizer=None,
        correlation_id=correlation_id_from(headers.get("x-correlation-id")),
        method=method,
    )
