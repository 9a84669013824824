"""HTTP of the OAuth endpoints: their parameters, and errors in OAuth's own format."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl

from api.error_formats import http_headers, status_of
from api.http_events import MAX_ANONYMOUS_BYTES, HttpRequest, HttpResponse
from shared.access.oauth.errors import ErrorCode, OAuthError
from shared.access.source_address import require_proxy
from shared.platform.config import config
from shared.rpc.errors import KhoError, NotFound, TooLarge
from shared.rpc.observation import observe
from shared.rpc.strict_json import compact

if TYPE_CHECKING:
    from collections.abc import Callable

    Answer = Callable[[HttpRequest], HttpResponse]
    ErrorRenderer = Callable[[HttpRequest, HTTPStatus, OAuthError], HttpResponse]

_FORM: Final = "application/x-www-form-urlencoded"
_MAX_PARAMETERS: Final = 50
_CODES: Final[dict[HTTPStatus, ErrorCode]] = {
    HTTPStatus.TOO_MANY_REQUESTS: "temporarily_unavailable",
    HTTPStatus.SERVICE_UNAVAILABLE: "temporarily_unavailable",
    HTTPStatus.GATEWAY_TIMEOUT: "temporarily_unavailable",
    HTTPStatus.INTERNAL_SERVER_ERROR: "server_error",
}
_CLIENT_CHALLENGE: Final = {"www-authenticate": 'Basic realm="Kho"'}


def json_error(_request: HttpRequest, status: HTTPStatus, error: OAuthError) -> HttpResponse:
    """Return the response with an error for a client."""
    body = {"error": error.code, "error_description": error.description}
    headers = _CLIENT_CHALLENGE if status == HTTPStatus.UNAUTHORIZED else {}
    return HttpResponse(status, compact(body), headers)


def oauth_endpoint(
    name: str, *, render_error: ErrorRenderer = json_error
) -> Callable[[Answer], Callable[[dict[str, Any], Any], dict[str, Any]]]:
    """Make a function from requests to responses the Lambda handler of an OAuth endpoint."""

    def decorate(answer: Answer) -> Callable[[dict[str, Any], Any], dict[str, Any]]:
        def handler(event: dict[str, Any], _context: Any) -> dict[str, Any]:
            request = HttpRequest.from_event(event)
            try:
                with observe(f"oauth/{name}", request.correlation_id) as observation:
                    try:
                        require_oauth()
                        require_proxy(request.headers)
                        response = answer(request)
                    except OAuthError as error:
                        observation.outcome = error.code
                        unknown = error.code == "invalid_client"
                        response = render_error(
                            request, HTTPStatus.UNAUTHORIZED if unknown else HTTPStatus.BAD_REQUEST, error
                        )
            except KhoError as error:
                status = status_of(type(error))
                failure = OAuthError(_CODES.get(status, "invalid_request"), error.message)
                response = render_error(request, status, failure).with_headers(http_headers(error))
            return response.to_event(request.correlation_id)

        return handler

    return decorate


def require_oauth() -> None:
    """Raise NotFound if this server issues no tokens."""
    if config().auth == "open":
        raise NotFound("Nothing here needs credentials.", guidance="Call /mcp without credentials.")
    if not config().public_url:
        raise NotFound(
            "This server issues no tokens: its public address is not configured.",
            guidance="Set KHO_PUBLIC_URL, or send a key as 'Authorization: Bearer …'.",
        )


def query_of(request: HttpRequest) -> dict[str, str]:
    """Return the parameters of the query."""
    return _parameters(request.query)


def form_of(request: HttpRequest) -> dict[str, str]:
    """Return the parameters of the body."""
    require_small(request)
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _FORM:
        raise OAuthError("invalid_request", f"Content-Type must be {_FORM}.")
    try:
        return _parameters(request.body.decode("utf-8"))
    except UnicodeDecodeError:
        raise OAuthError("invalid_request", "The body is not UTF-8.") from None


def require_small(request: HttpRequest) -> None:
    """Raise TooLarge for a body that is larger than any anonymous caller may send."""
    if len(request.body) > MAX_ANONYMOUS_BYTES:
        raise TooLarge("A body without credentials is limited to 256 KiB.")


def _parameters(text: str) -> dict[str, str]:
    """Read parameters. One without a value counts as omitted, and none may be repeated (RFC 6749, section 3.1)."""
    try:
        pairs = [pair for pair in parse_qsl(text, max_num_fields=_MAX_PARAMETERS, errors="strict") if pair[1]]
    except (ValueError, UnicodeDecodeError):
        raise OAuthError("invalid_request", "The parameters are not valid, or too many.") from None
    parameters = dict(pairs)
    if len(parameters) < len(pairs):
        raise OAuthError("invalid_request", "A parameter is repeated.")
    return parameters
