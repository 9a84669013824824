"""HTTP requests and responses in the gateway's event format (payload 2.0)."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from http import HTTPStatus
from typing import Any, Final, Self

from api.error_formats import dialect_of, http_headers, status_of
from shared.platform.telemetry import correlation_id_from
from shared.rpc.caller import ANONYMOUS, Caller
from shared.rpc.errors import InvalidRequest, KhoError, ParseError, TooLarge
from shared.rpc.invocation import MAX_EVENT_BYTES
from shared.rpc.observation import observe
from shared.rpc.strict_json import compact, is_encodable, parse, require_text

MAX_ANSWER_BYTES: Final = MAX_EVENT_BYTES - 4096
"""The limit of a response body; the rest is for status and headers."""
MAX_ANONYMOUS_BYTES: Final = 256 * 1024
"""The limit of a body that a caller without credentials sends."""
_GZIP: Final = re.compile(r"(^|[\s,])(gzip|\*)\s*(,|$|;\s*q=(?!0(\.0*)?\s*(,|$)))")
_MAX_ECHOED: Final = 1024
_MAX_ESCAPED_BYTES: Final = 6
"""The most bytes that a character takes in an event: a control character's escape."""
_JSON: Final = "application/json"


@dataclass(frozen=True)
class HttpRequest:
    """One HTTP request from the gateway."""

    path: str
    path_parameters: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    source_ip: str
    authorizer: Mapping[str, Any] | None
    correlation_id: str
    query: str = ""
    method: str = ""

    @classmethod
    def from_event(cls, event: Mapping[str, Any]) -> Self:
        """Read the gateway's event, payload format 2.0."""
        headers = event.get("headers") or {}
        body = event.get("body") or ""
        context = event["requestContext"]
        return cls(
            path=event["rawPath"],
            path_parameters=event.get("pathParameters") or {},
            headers=headers,
            body=base64.b64decode(body) if event.get("isBase64Encoded") else body.encode("utf-8", "surrogatepass"),
            source_ip=context.get("http", {}).get("sourceIp", ""),
            authorizer=(context.get("authorizer") or {}).get("lambda"),
            method=context.get("http", {}).get("method", ""),
            query=event.get("rawQueryString") or "",
            correlation_id=correlation_id_from(headers.get("x-correlation-id") or context.get("requestId")),
        )

    def request_id(self) -> str | None:
        """Return the body's `request_id`, even if the rest of the body is invalid.

        A large body that was refused unread is not parsed for it.
        """
        if len(self.body) > MAX_ANONYMOUS_BYTES and "_parsed" not in vars(self):
            return None
        try:
            body = self._parsed
        except ParseError:
            return None
        id_ = body.get("request_id") if isinstance(body, dict) else None
        return id_ if isinstance(id_, str) and len(id_) <= _MAX_ECHOED and is_encodable(id_) else None

    def json(self, caller: Caller, *other_types: str) -> Any:
        """Return the parsed body. Refuse types that are neither JSON nor named, and large bodies of anonymous callers.

        Without a body there are no parameters: generic clients omit both the body and its type. A browser names the
        page's origin with every POST, so a page of another site cannot call a method this way.
        """
        if not self.body and self.headers.keys().isdisjoint(("content-type", "origin")):
            return {}
        if caller == ANONYMOUS:
            self.require_small_body()
        self._require_json(*other_types)
        return self._parsed

    def require_small_body(self) -> None:
        """Refuse a body that is too large for a caller without credentials."""
        if len(self.body) > MAX_ANONYMOUS_BYTES:
            raise TooLarge(
                "A body without credentials is limited to 256 KiB.",
                guidance="Send less at once, or send a key as 'Authorization: Bearer …'.",
            )

    def text_json(self, caller: Caller) -> Any:
        """Return the parsed body like `json`. Refuse lone surrogates too."""
        value = self.json(caller)
        require_text(value, self.body)
        return value

    def parameters(self, caller: Caller) -> Any:
        """Return a method's parameters: none for an empty body of JSON's type, which generated clients send."""
        return {} if not self.body and self._content_type == _JSON else self.text_json(caller)

    @cached_property
    def _parsed(self) -> Any:
        return parse(self.body)

    @property
    def _content_type(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    def _require_json(self, *other_types: str) -> None:
        """Refuse other content types than JSON: browsers send those across sites without a preflight request."""
        if self._content_type not in (_JSON, *other_types):
            raise InvalidRequest(
                f"Content-Type must be {_JSON}.",
                details=[{"field": "Content-Type", "message": f"must be {_JSON}"}],
                guidance=f"Send the header 'Content-Type: {_JSON}'.",
            )


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """One HTTP response to the gateway."""

    status: HTTPStatus
    body: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    is_base64: bool = False
    """True if `body` is the base64 of bytes that are no text."""

    def with_headers(self, headers: Mapping[str, str]) -> HttpResponse:
        """Return the response with these headers besides its own, which take precedence."""
        return replace(self, headers={**headers, **self.headers})

    def to_event(self, correlation_id: str) -> dict[str, Any]:
        """Return the response as the gateway's event. Raise TooLarge if it does not fit."""
        body = self.body or ""
        if not fits_event(body):
            raise TooLarge("The answer exceeds 6 MB.")
        headers = {"x-correlation-id": correlation_id, "cache-control": "no-store"}
        if self.body is not None:
            headers["content-type"] = _JSON
        return {
            "statusCode": int(self.status),
            "headers": headers | dict(self.headers),
            "body": body,
            "isBase64Encoded": self.is_base64,
        }


def accepts_gzip(headers: Mapping[str, str]) -> bool:
    """Return True if the client takes a body that is compressed by gzip."""
    return bool(_GZIP.search(headers.get("accept-encoding", "").lower()))


def event_bytes(body: str) -> int:
    """Return the size of `body` as a JSON string in a function's event."""
    return len(json.dumps(body, ensure_ascii=False).encode("utf-8"))


def fits_event(body: str) -> bool:
    """Return True if `body` fits into a function's event. Only a body that might not fit is measured."""
    return len(body) * _MAX_ESCAPED_BYTES < MAX_ANSWER_BYTES or event_bytes(body) <= MAX_ANSWER_BYTES


def respond(
    name: str, event: Mapping[str, Any], answer: Callable[[HttpRequest], HttpResponse], server: str = ""
) -> dict[str, Any]:
    """Answer the gateway's `event`, observed as `name`, with errors in the format of `server`."""
    request = HttpRequest.from_event(event)
    try:
        with observe(name, request.correlation_id, traceparent=request.headers.get("traceparent")):
            return answer(request).to_event(request.correlation_id)
    except KhoError as error:
        return error_response(request, error, server).to_event(request.correlation_id)


def error_response(request: HttpRequest, error: KhoError, server: str) -> HttpResponse:
    """Return the response with `error` in the dialect of `server`."""
    body = dialect_of(server).http_body(error, request)
    return HttpResponse(status_of(type(error)), compact(body), http_headers(error))


def endpoint(
    name: str, server: str = ""
) -> Callable[[Callable[[HttpRequest], HttpResponse]], Callable[[dict[str, Any], Any], dict[str, Any]]]:
    """Make a function from requests to responses the Lambda handler of the endpoint `name`."""

    def decorate(answer: Callable[[HttpRequest], HttpResponse]) -> Callable[[dict[str, Any], Any], dict[str, Any]]:
        def handler(event: dict[str, Any], _context: Any) -> dict[str, Any]:
            return respond(name, event, answer, server)

        return handler

    return decorate
