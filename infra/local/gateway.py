"""The template's HTTP API on one machine: HTTP requests become API Gateway events for the functions."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import os
import re
import secrets
import sys
import threading
import time
from collections import deque
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from starlette.middleware.cors import CORSMiddleware
from starlette.responses import StreamingResponse

from api.http_events import HttpRequest, accepts_gzip, error_response
from infra.local.call_queue import CallQueue
from shared.devices.firmware_releases import LOCAL_PREFIX, open_file
from shared.platform.telemetry import correlation_id_from
from shared.platform.ttl_cache import TtlCache
from shared.rpc.errors import (
    Internal,
    KhoError,
    MethodNotAllowed,
    NotAllowed,
    NotSignedIn,
    OutOfTime,
    TooLarge,
    UnknownMethod,
)
from shared.rpc.invocation import MAX_EVENT_BYTES, FunctionCrashed
from shared.rpc.strict_json import encodable
from shared.rpc.web_origin import refuse_foreign_pages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from io import FileIO
    from pathlib import Path

    from starlette.datastructures import Headers
    from starlette.responses import Response
    from starlette.types import ASGIApp, Receive, Scope, Send

    from infra.local.functions import Functions
    from infra.local.template import Route, Template

    LogAccess = Callable[[str, str, int, float], None]

MAX_BODY_BYTES: Final = 10 * 1024 * 1024
_MAX_WAITING_LINES: Final = 1000
_TERMINAL_PAUSE_SECONDS: Final = 0.05
_MAX_SHOWN_PATH: Final = 200
_MIN_COMPRESSED_BYTES: Final = 1024
_FILE_PART: Final = 65_536
_VERIFIED_SECONDS: Final = 60.0
_MAX_ESCAPED_BYTES: Final = 6
"""The most bytes that a character takes in an event: a control character's escape."""
_MAX_HEADER_EVENT_BYTES: Final = 1 << 18
"""More than an event takes without its body."""
_TEXT: Final = re.compile(r"text/|application/(json|javascript|xml)|application/[^;]+\+(json|xml)")


@dataclass(frozen=True, slots=True)
class _GatewayResponse:
    status_code: int
    headers: dict[str, str]
    body: bytes

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        """Send the response."""
        headers = {"content-length": str(len(self.body)), **self.headers}
        if self.status_code == HTTPStatus.NO_CONTENT:
            del headers["content-length"]
        raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": self.status_code, "headers": raw})
        await send({"type": "http.response.body", "body": self.body})

    @classmethod
    def from_result(cls, result: dict[str, Any]) -> _GatewayResponse:
        """Build the response from a function's result."""
        content = base64.b64decode(result["body"]) if result.get("isBase64Encoded") else result["body"].encode("utf-8")
        return cls(result["statusCode"], result["headers"], content)


CORS: Final = {
    "AllowMethods": ("GET", "POST"),
    "AllowHeaders": (
        "authorization",
        "content-type",
        "accept",
        "mcp-protocol-version",
        "mcp-method",
        "mcp-name",
        "x-correlation-id",
    ),
    "ExposeHeaders": ("x-correlation-id", "retry-after", "www-authenticate"),
}
"""The lists of the template's CorsConfiguration."""
CORS_MAX_AGE: Final = 600


class Connection:
    """The connection of a request, which may record the steps of its call."""

    def note(self, scope: Scope, body: bytes) -> None:
        """Note the request."""

    def begin(self) -> None:
        """Begin the call."""

    def answer(self) -> None:
        """Begin the response."""

    def end(self) -> None:
        """End the response."""


_CONNECTION: Final = Connection()


class _ClientDisconnected(Exception):
    pass


class Gateway:
    """An ASGI application that behaves as the deployed HTTP API does."""

    def __init__(  # noqa: PLR0913 - each is a part of the gateway
        self,
        template: Template,
        functions: Functions,
        *,
        authorizing: bool,
        access_log: LogAccess,
        origins: Sequence[str] = (),
        firmware: Path | None = None,
        calls: CallQueue | None = None,
    ) -> None:
        # As in API Gateway, a path without variables precedes one with them.
        self._routes = {route.key: route for route in template.routes if "{" not in route.path}
        routes = sorted(template.routes, key=lambda route: route.path.count("{"))
        self._patterns = [(_pattern(route.path), route) for route in routes]
        self._authorizer = template.authorizer
        self._functions = functions
        self._authorizing = authorizing
        self._origins = origins
        self._firmware = firmware
        self._access_log = access_log
        self._calls = calls or CallQueue()
        self._verified: TtlCache[str, bool] = TtlCache(_VERIFIED_SECONDS)
        """The credentials whose calls have a turn of their own. Calls of others share that of their address."""
        self._requests: dict[object, tuple[str, str]] = {}

    def requests(self) -> list[str]:
        """Return the verbs and paths of the requests under way."""
        return [f"{verb} {_shown(path)}" for verb, path in self._requests.values()]

    def close(self) -> None:
        """Cancel requests that have not started."""
        self._calls.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request."""
        started = time.perf_counter()
        key = object()
        self._requests[key] = scope["method"], scope["path"]
        connection: Connection = scope.get("state", {}).get("connection", _CONNECTION)
        try:
            body = await _read(receive)
            # uvicorn sends no body in response to HEAD.
            request = {**scope, "method": "GET"} if scope["method"] == "HEAD" else scope
            connection.note(scope, body or b"")
            response = await self._respond(request, body, connection)
        except _ClientDisconnected:
            return  # an incomplete request is not executed
        except asyncio.CancelledError:  # the server ends
            response = _error(_event(scope, b""), OutOfTime())
        finally:
            del self._requests[key]
        connection.answer()
        await response(scope, receive, send)
        connection.end()
        self._access_log(scope["method"], scope["path"], response.status_code, time.perf_counter() - started)

    async def _respond(
        self, scope: Scope, body: bytes | None, connection: Connection
    ) -> _GatewayResponse | StreamingResponse:
        event = _event(scope, body or b"")
        try:
            return await self._invoke(event, connection, too_large=body is None)
        except TimeoutError:
            return _error(event, OutOfTime())
        except KhoError as error:
            return _error(event, error)

    async def _invoke(
        self, event: dict[str, Any], connection: Connection, *, too_large: bool
    ) -> _GatewayResponse | StreamingResponse:
        """Invoke the route's function, unless the gateway refuses the request."""
        headers, context = event["headers"], event["requestContext"]["http"]
        refuse_foreign_pages(headers, is_open=not self._authorizing, origins=self._origins)
        verb, path = context["method"], event["rawPath"]
        if self._firmware and path.startswith(LOCAL_PREFIX) and (file := open_file(self._firmware, path)):
            name = path.removeprefix(LOCAL_PREFIX)
            return _firmware_response(file, name, verb, HttpRequest.from_event(event).correlation_id)
        route, parameters = self._route(verb, path)
        if too_large:
            raise TooLarge("The request exceeds 10 MB.")
        event["routeKey"] = event["requestContext"]["routeKey"] = route.key
        if parameters:
            event["pathParameters"] = parameters
        must_authorize = self._authorizing and route.authorized
        seconds = self._functions.timeout(route.function)
        if must_authorize:
            seconds += self._functions.timeout(self._authorizer)
        credential = headers.get("authorization", "")
        caller = credential if self._verified.get(credential) else context["sourceIp"]
        work = partial(self._call, route.function, event, authorizing=must_authorize)
        return await self._calls.run(caller, seconds, connection.begin, work)

    def _call(self, function: str, event: dict[str, Any], *, authorizing: bool) -> _GatewayResponse:
        """Run the function in this thread, after the authorizer if the route has one."""
        try:
            if authorizing:
                self._authorize(event)
            if not _fits(event.get("body")) and len(_encoded(event)) > MAX_EVENT_BYTES:
                raise TooLarge("The request exceeds 6 MB.")
            result = self._functions.run(function, event)
        except FunctionCrashed:
            raise _internal(event) from None
        if not _fits(result["body"]) and len(_encoded(result)) > MAX_EVENT_BYTES:
            raise _internal(event)
        return _compressed(event["headers"], _GatewayResponse.from_result(result))

    def _authorize(self, event: dict[str, Any]) -> None:
        """Invoke the authorizer and add its context to the event. Raise an error if the caller is refused."""
        if "authorization" not in event["headers"]:
            raise NotSignedIn
        request = {name: event[name] for name in ("version", "routeKey", "rawPath", "headers", "requestContext")}
        request |= {"type": "REQUEST", "identitySource": [event["headers"]["authorization"]]}
        result = self._functions.run(self._authorizer, request)
        if not result["isAuthorized"]:
            raise NotAllowed
        self._verified.put(event["headers"]["authorization"], value=True)
        event["requestContext"]["authorizer"] = {"lambda": result["context"]}

    def _route(self, method: str, path: str) -> tuple[Route, dict[str, str]]:
        if route := self._routes.get(f"{method} {path}"):
            return route, {}
        matches = [(route, match) for pattern, route in self._patterns if (match := pattern.fullmatch(path))]
        for route, match in matches:
            if route.method == method:
                return route, match.groupdict()
        if matches:
            methods = {route.method for route, _ in matches}
            # GET and DELETE of an MCP endpoint exist to be refused.
            raise MethodNotAllowed(*(["POST"] if "DELETE" in methods else sorted(methods)))
        raise self._unknown(path)

    def _unknown(self, path: str) -> UnknownMethod:
        """Build the error of a path without a route; its guidance names the most similar path."""
        shown = _shown(path)
        similar = get_close_matches(shown, {route.path for _, route in self._patterns}, n=1)
        guidance = f"Did you mean {similar[0]}? {UnknownMethod.advice}" if similar else UnknownMethod.advice
        return UnknownMethod(f"There is no endpoint {shown}.", details={"path": shown}, guidance=guidance)


class _Cors(CORSMiddleware):
    def preflight_response(self, request_headers: Headers) -> Response:
        """Answer with a correlation id, as every answer has one."""
        response = super().preflight_response(request_headers)
        response.headers["x-correlation-id"] = correlation_id_from(None)
        return response


def with_cors(gateway: ASGIApp, origins: Sequence[str]) -> ASGIApp:
    """Return the gateway with the headers that let pages of these origins call it. API Gateway sends the same."""
    if not origins:
        return gateway
    return _Cors(
        gateway,
        allow_origins=origins,
        allow_methods=CORS["AllowMethods"],
        allow_headers=CORS["AllowHeaders"],
        expose_headers=CORS["ExposeHeaders"],
        max_age=CORS_MAX_AGE,
    )


class AccessLog(threading.Thread):
    """The access log on the terminal. It never delays a request.

    A thread writes the lines that have come since it wrote last. Lines are dropped if the terminal does not take them.
    """

    def __init__(self) -> None:
        super().__init__(name="terminal", daemon=True)
        self._lines: deque[str] = deque()
        self._has_lines = threading.Event()

    def access(self, method: str, path: str, status: int, seconds: float) -> None:
        """Log one request."""
        escaped = path.encode("unicode_escape").decode("ascii")
        if len(self._lines) < _MAX_WAITING_LINES:
            self._lines.append(f"{time.strftime('%H:%M:%S')} {method} {escaped} {status} {seconds * 1000:.0f} ms\n")
        if not self._has_lines.is_set():
            self._has_lines.set()

    def run(self) -> None:
        """Write lines until the output is closed."""
        while self._has_lines.wait():
            self._has_lines.clear()
            try:
                sys.stdout.write("".join(self._lines.popleft() for _ in range(len(self._lines))))
                sys.stdout.flush()
            except (OSError, ValueError):
                return
            time.sleep(_TERMINAL_PAUSE_SECONDS)


def _pattern(path: str) -> re.Pattern[str]:
    """Return the pattern of a route's path, with variables of one part, such as {id}, and of the rest: {proxy+}."""
    pattern = re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(path))
    return re.compile(re.sub(r"\\{(\w+)\\\+\\}", r"(?P<\1>.*)", pattern))


async def _read(receive: Receive) -> bytes | None:
    """Return the whole body, or None if it is larger than the gateway accepts."""
    parts, size = [], 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _ClientDisconnected
        part = message.get("body", b"")
        size += len(part)
        if size <= MAX_BODY_BYTES:
            parts.append(part)
        if not message.get("more_body"):
            return b"".join(parts) if size <= MAX_BODY_BYTES else None


def _firmware_response(file: FileIO, name: str, verb: str, correlation_id: str) -> StreamingResponse:
    """Return the response with a file. Firmware takes only status 200 with a Content-Length."""
    size = os.fstat(file.fileno()).st_size
    if verb != "GET":
        file.close()
        raise MethodNotAllowed("GET")
    headers = {
        "content-length": str(size),
        "content-disposition": f'attachment; filename="{name}"',
        "x-correlation-id": correlation_id,
        "x-content-type-options": "nosniff",
        "cache-control": "no-store",
    }
    return StreamingResponse(_parts(file, size), headers=headers, media_type="application/octet-stream")


def _parts(file: FileIO, size: int) -> Iterator[bytes]:
    """Yield the first `size` bytes of a file, which may grow meanwhile."""
    with file:
        while size and (part := file.read(min(size, _FILE_PART))):
            size -= len(part)
            yield part


def _compressed(headers: Mapping[str, str], response: _GatewayResponse) -> _GatewayResponse:
    """Compress a large text if the client accepts gzip, and no function has compressed it."""
    if len(response.body) <= _MIN_COMPRESSED_BYTES or not accepts_gzip(headers):
        return response
    if "content-encoding" in response.headers or not _TEXT.match(response.headers.get("content-type", "")):
        return response
    compressed = response.headers | {"content-encoding": "gzip", "vary": "accept-encoding"}
    return replace(response, headers=compressed, body=gzip.compress(response.body, compresslevel=5, mtime=0))


def _fits(body: str | None) -> bool:
    """Return True if an event with this body is certainly within Lambda's limit. Only others are measured."""
    return len(body or "") * _MAX_ESCAPED_BYTES < MAX_EVENT_BYTES - _MAX_HEADER_EVENT_BYTES


def _encoded(event: dict[str, Any]) -> bytes:
    return json.dumps(event, ensure_ascii=False).encode("utf-8")


def _shown(path: str) -> str:
    return encodable(path)[:_MAX_SHOWN_PATH]


def _error(event: dict[str, Any], error: KhoError) -> _GatewayResponse:
    request = HttpRequest.from_event(event)
    server = request.path.removeprefix("/").partition("/")[0]
    response = error_response(request, error, server)
    return _GatewayResponse.from_result(response.to_event(request.correlation_id))


def _internal(event: dict[str, Any]) -> Internal:
    return Internal(HttpRequest.from_event(event).correlation_id)


def _event(scope: Scope, body: bytes) -> dict[str, Any]:
    """Build the gateway's event, payload format 2.0, of a request without a route."""
    headers: dict[str, str] = {}
    for raw_name, raw_value in scope["headers"]:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        headers[name] = f"{headers[name]},{value}" if name in headers else value
    event: dict[str, Any] = {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": scope["path"],
        "rawQueryString": scope["query_string"].decode("latin-1"),
        "headers": headers,
        "requestContext": {
            "http": {
                "method": scope["method"],
                "path": scope["path"],
                "protocol": f"HTTP/{scope['http_version']}",
                "sourceIp": scope["client"][0] if scope.get("client") else "",
                "userAgent": headers.get("user-agent", ""),
            },
            "requestId": secrets.token_urlsafe(12),
            "routeKey": "$default",
            "stage": "$default",
            "timeEpoch": int(time.time() * 1000),
        },
        "isBase64Encoded": False,
    }
    if body:
        event["body"], event["isBase64Encoded"] = _encode_body(body, headers.get("content-type", ""))
    return event


def _encode_body(body: bytes, content_type: str) -> tuple[str, bool]:
    """Return the body as text if its content type says so and it is UTF-8, else as base64, and whether it is base64."""
    if _TEXT.match(content_type.lower()):
        try:
            return body.decode("utf-8"), False
        except UnicodeDecodeError:
            pass
    return base64.b64encode(body).decode("ascii"), True
