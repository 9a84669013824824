"""What every HTTP door shares: the gateway's event in, the gateway's answer out."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from api import error_formats
from shared.rpc.errors import InvalidRequest, KhoError, ParseError, TooLarge
from shared.rpc.invoke import MAX_EVENT_BYTES
from shared.rpc.strict_json import compact, is_encodable, parse
from shared.telemetry import correlation_id_from, observe

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MAX_ANSWER_BYTES: Final = MAX_EVENT_BYTES - 4096
"""What is left of it for a body, beside status and headers."""
_MAX_ECHOED: Final = 1024
_JSON: Final = "application/json"


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One HTTP request, as the gateway hands it over."""

    path: str
    path_parameters: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    authorizer: Mapping[str, Any] | None
    correlation_id: str

    @classmethod
    def from_event(cls, event: Mapping[str, Any]) -> HttpRequest:
        """Read the gateway's event, payload format 2.0."""
        headers = event.get("headers") or {}
        body = event.get("body") or ""
        context = event["requestContext"]
        return cls(
            path=event["rawPath"],
            path_parameters=event.get("pathParameters") or {},
            headers=headers,
            body=base64.b64decode(body) if event.get("isBase64Encoded") else body.encode("utf-8", "surrogatepass"),
            authorizer=(context.get("authorizer") or {}).get("lambda"),
            correlation_id=correlation_id_from(headers.get("x-correlation-id") or context.get("requestId")),
        )

    def request_id(self) -> str | None:
        """What the body calls this request, whatever else may be wrong with it."""
        try:
            body = parse(self.body)
        except ParseError:
            return None
        found = body.get("request_id") if isinstance(body, dict) else None
        echoed = isinstance(found, str) and len(found) <= _MAX_ECHOED and is_encodable(found)
        return found if echoed else None

    def require_json(self) -> None:
        """Refuse what is not declared as JSON: browsers may send anything else across sites unasked."""
        content_type = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        if content_type != _JSON:
            raise InvalidRequest(
                f"Content-Type must be {_JSON}.",
                details=[{"field": "Content-Type", "message": f"must be {_JSON}"}],
                guidance=f"Send the header 'Content-Type: {_JSON}'.",
            )


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """One HTTP answer, as the gateway takes it."""

    status: HTTPStatus
    body: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def error(cls, error: KhoError, body: dict[str, Any] | None = None) -> HttpResponse:
        """`error` in the dialect of HTTP, or with a body in another."""
        said = error_formats.http_body(error) if body is None else body
        return cls(error_formats.http_status(error), compact(said), error_formats.http_headers(error))

    def to_event(self, correlation_id: str) -> dict[str, Any]:
        """The answer as the gateway takes it, unless it is too large."""
        body = self.body or ""
        if event_bytes(body) > MAX_ANSWER_BYTES:
            raise TooLarge("The answer would pass 6 MB.")
        headers = {"x-correlation-id": correlation_id, "cache-control": "no-store"}
        if self.body is not None:
            headers["content-type"] = _JSON
        return {
            "statusCode": int(self.status),
            "headers": headers | dict(self.headers),
            "body": body,
            "isBase64Encoded": False,
        }


def event_bytes(body: str) -> int:
    """The size of `body` inside a function's event."""
    return len(json.dumps(body, ensure_ascii=False).encode("utf-8"))


def error_response(_request: HttpRequest, error: KhoError) -> HttpResponse:
    """`error` as most doors answer it."""
    return HttpResponse.error(error)


def agent_data_error_response(request: HttpRequest, error: KhoError) -> HttpResponse:
    """`error` as seed 000's doors answer it."""
    return HttpResponse.error(error, error_formats.agent_data_body(error, request.request_id()))


def recall_kit_error_response(_request: HttpRequest, error: KhoError) -> HttpResponse:
    """`error` as seed 003's methods answer it."""
    return HttpResponse.error(error, error_formats.recall_kit_body(error))


def respond(
    name: str,
    event: Mapping[str, Any],
    answer: Callable[[HttpRequest], HttpResponse],
    failure: Callable[[HttpRequest, KhoError], HttpResponse] = error_response,
) -> dict[str, Any]:
    """Answer the gateway's `event` under the name `name`, every failure in the contract's words."""
    request = HttpRequest.from_event(event)
    try:
        with observe(name, request.correlation_id):
            return answer(request).to_event(request.correlation_id)
    except KhoError as error:
        return failure(request, error).to_event(request.correlation_id)


def endpoint(
    name: str, failure: Callable[[HttpRequest, KhoError], HttpResponse] = error_response
) -> Callable[[Callable[[HttpRequest], HttpResponse]], Callable[[dict[str, Any], Any], dict[str, Any]]]:
    """Make a function from requests to responses the Lambda handler of the door `name`."""

    def decorate(answer: Callable[[HttpRequest], HttpResponse]) -> Callable[[dict[str, Any], Any], dict[str, Any]]:
        def handler(event: dict[str, Any], _context: Any) -> dict[str, Any]:
            return respond(f"endpoints/{name}", event, answer, failure)

        return handler

    return decorate
