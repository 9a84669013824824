"""The template's HTTP API on one machine: HTTP requests become API Gateway events for the functions."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import queue
import re
import secrets
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from shared.rpc.invoke import MAX_EVENT_BYTES, FunctionCrashed

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import Receive, Scope, Send

    from infra.local.functions import Functions
    from infra.local.template import Route, Template

    LogAccess = Callable[[str, str, int, float], None]

MAX_BODY_BYTES: Final = 10 * 1024 * 1024
_LOOPBACK_NAMES: Final = ("localhost", "127.0.0.1", "[::1]", "")
_MAX_WAITING_LINES: Final = 1000
_TEXT: Final = re.compile(r"text/|application/(json|javascript|xml)|application/[^;]+\+(json|xml)")


@dataclass(frozen=True, slots=True)
class _GatewayResponse:
    status: int
    headers: dict[str, str]
    body: bytes

    @classmethod
    def own(cls, status: HTTPStatus, message: str) -> _GatewayResponse:
        """Build an error response of the gateway itself."""
        return cls(status, {"content-type": "application/json"}, json.dumps({"message": message}).encode())


class _ClientDisconnected(Exception):
    pass


class Gateway:
    """An ASGI application that behaves as the deployed HTTP API does."""

    def __init__(
        self, template: Template, functions: Functions, *, authorizing: bool, access_log: LogAccess, threads: int = 512
    ) -> None:
        self._routes = [(_pattern(route.path), route) for route in template.routes]
        self._authorizer = template.authorizer
        self._functions = functions
        self._authorizing = authorizing
        self._access_log = access_log
        self._pool = ThreadPoolExecutor(max_workers=threads, thread_name_prefix="gateway")

    def close(self) -> None:
        """Cancel requests that have not started."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request."""
        if scope["type"] != "http":
            return
        started = time.perf_counter()
        try:
            body = await _read(receive)
        except _ClientDisconnected:
            return  # an incomplete request is not executed
        if body is None:
            response = _GatewayResponse.own(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "Request Entity Too Large")
        else:
            loop = asyncio.get_running_loop()
            response = await loop.run_in_executor(self._pool, self._respond, scope, body)
        headers = {"content-length": str(len(response.body)), **response.headers}
        if response.status == HTTPStatus.NO_CONTENT:
            del headers["content-length"]
        raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": response.status, "headers": raw})
        await send({"type": "http.response.body", "body": response.body})
        self._access_log(scope["method"], scope["path"], response.status, time.perf_counter() - started)

    def _respond(self, scope: Scope, body: bytes) -> _GatewayResponse:
        headers: dict[str, str] = {}
        for raw_name, raw_value in scope["headers"]:
            name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
            headers[name] = f"{headers[name]},{value}" if name in headers else value
        host = re.sub(r":\d*$", "", headers.get("host", "")).lower()
        if not self._authorizing and host not in _LOOPBACK_NAMES:
            # DNS rebinding: without keys, a web page whose host name resolves to this machine must not be served.
            return _GatewayResponse.own(HTTPStatus.FORBIDDEN, "Forbidden")
        route, parameters = self._route(scope["method"], scope["path"])
        if route is None:
            return _GatewayResponse.own(HTTPStatus.NOT_FOUND, "Not Found")
        event = _event(scope, route, parameters, headers, body)
        if self._authorizing and route.authorized:
            rejection = self._authorize(event)
            if rejection:
                return rejection
        payload = json.dumps(event, ensure_ascii=False).encode("utf-8")
        if len(payload) > MAX_EVENT_BYTES:
            return _GatewayResponse.own(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "Request Entity Too Large")
        try:
            raw = self._functions(route.function, payload)
        except TimeoutError:
            return _GatewayResponse.own(HTTPStatus.SERVICE_UNAVAILABLE, "Service Unavailable")
        except FunctionCrashed:
            return _GatewayResponse.own(HTTPStatus.INTERNAL_SERVER_ERROR, "Internal Server Error")
        if len(raw) > MAX_EVENT_BYTES:
            return _GatewayResponse.own(HTTPStatus.INTERNAL_SERVER_ERROR, "Internal Server Error")
        result = json.loads(raw)
        content = base64.b64decode(result["body"]) if result.get("isBase64Encoded") else result["body"].encode("utf-8")
        return _GatewayResponse(result["statusCode"], result["headers"], content)

    def _authorize(self, event: dict[str, Any]) -> _GatewayResponse | None:
        """Invoke the authorizer and add its context to the event. Return an error response if the caller is refused."""
        if "authorization" not in event["headers"]:
            return _GatewayResponse.own(HTTPStatus.UNAUTHORIZED, "Unauthorized")
        request = {name: event[name] for name in ("version", "routeKey", "rawPath", "headers", "requestContext")}
        request |= {"type": "REQUEST", "identitySource": [event["headers"]["authorization"]]}
        try:
            result = json.loads(self._functions(self._authorizer, json.dumps(request).encode()))
        except (FunctionCrashed, TimeoutError):
            return _GatewayResponse.own(HTTPStatus.INTERNAL_SERVER_ERROR, "Internal Server Error")
        if not result["isAuthorized"]:
            return _GatewayResponse.own(HTTPStatus.FORBIDDEN, "Forbidden")
        event["requestContext"]["authorizer"] = {"lambda": result["context"]}
        return None

    def _route(self, method: str, path: str) -> tuple[Route | None, dict[str, str]]:
        for pattern, route in self._routes:
            if route.method == method and (match := pattern.fullmatch(path)):
                return route, match.groupdict()
        return None, {}


class AccessLog(threading.Thread):
    """The access log on the terminal. It never delays a request.

    A thread writes lines as fast as the terminal takes them. Lines are dropped when its queue is full.
    """

    def __init__(self) -> None:
        super().__init__(name="terminal", daemon=True)
        self._lines: queue.Queue[str] = queue.Queue(_MAX_WAITING_LINES)

    def access(self, method: str, path: str, status: int, seconds: float) -> None:
        """Log one request."""
        escaped = path.encode("unicode_escape").decode("ascii")
        with contextlib.suppress(queue.Full):
            self._lines.put_nowait(f"{time.strftime('%H:%M:%S')} {method} {escaped} {status} {seconds * 1000:.0f} ms\n")

    def run(self) -> None:
        """Write lines until the output is closed."""
        while True:
            line = self._lines.get()
            try:
                sys.stdout.write(line)
                sys.stdout.flush()
            except (OSError, ValueError):
                return


def _pattern(path: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(path)))


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


def _event(
    scope: Scope, route: Route, parameters: dict[str, str], headers: dict[str, str], body: bytes
) -> dict[str, Any]:
    """Build the gateway's event, payload format 2.0."""
    event: dict[str, Any] = {
        "version": "2.0",
        "routeKey": route.key,
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
            "routeKey": route.key,
            "stage": "$default",
            "timeEpoch": int(time.time() * 1000),
        },
        "isBase64Encoded": False,
    }
    if parameters:
        event["pathParameters"] = parameters
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
