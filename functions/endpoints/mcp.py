"""POST /mcp: MCP over Streamable HTTP, stateless: every tool, resource and prompt.

The official SDK speaks the protocol. Before it, this door checks what the SDK would let through or answer with an
exception's text: Host and Origin, credentials, and that the body is one message.
"""

from __future__ import annotations

import json
import re
from functools import cache, partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from mcp_types.jsonrpc import jsonrpc_message_adapter
from pydantic import ValidationError

from api.authentication import caller_from_headers, require_authenticated
from api.error_formats import http_body, jsonrpc_error
from api.http_events import HttpRequest, HttpResponse, respond
from api.mcp_server import server_for_catalog
from api.mcp_transport import McpRequestContext, McpTransport
from endpoints.resource_metadata import challenge
from shared.config import config
from shared.rpc.errors import InvalidParams, InvalidRequest, KhoError, NotAllowed, NotSignedIn, ParseError
from shared.rpc.mcp_catalog import mcp_catalog
from shared.rpc.strict_json import compact, is_encodable, parse, require_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from shared.rpc.caller import Caller

_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
_LARGE: Final = 64 * 1024
_ONLY_POST: Final = {
    "error": {
        "code": "METHOD_NOT_ALLOWED",
        "message": "This door takes POST alone: it keeps no sessions and opens no streams.",
        "details": {},
        "guidance": "Send each MCP message as the body of a POST.",
    }
}


def handler(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    """Answer one MCP message."""
    return handle_message(event, _transport())


def handle_message(event: dict[str, Any], transport: McpTransport, *, open_to_all: bool = False) -> dict[str, Any]:
    """Answer the gateway's event with what the MCP server behind `transport` says."""
    admit = caller_from_headers if open_to_all else _authenticated_caller
    return respond("endpoints/mcp", event, partial(_answer, event=event, transport=transport, admit=admit))


@cache
def _transport() -> McpTransport:
    return McpTransport(server_for_catalog(mcp_catalog()))


def _answer(
    request: HttpRequest,
    *,
    event: dict[str, Any],
    transport: McpTransport,
    admit: Callable[[Mapping[str, str]], Caller],
) -> HttpResponse:
    if event["requestContext"]["http"]["method"] != "POST":
        return HttpResponse(HTTPStatus.METHOD_NOT_ALLOWED, compact(_ONLY_POST), {"allow": "POST"})
    _refuse_foreign(request.headers)
    try:
        caller = admit(request.headers)
    except NotSignedIn as error:
        headers = {"www-authenticate": challenge(request.headers)}
        return HttpResponse(HTTPStatus.UNAUTHORIZED, compact(http_body(error)), headers)
    message: Any = None
    try:
        request.require_json()
        message = parse(request.body)
        _require_one_message(message)
    except (ParseError, InvalidRequest, InvalidParams) as error:
        return _refusal(message, error)
    visit = McpRequestContext(caller, request.correlation_id, request.path_parameters.get("device_id", ""))
    said = transport.answer(_mcp_headers_only(event), message, visit)
    return HttpResponse(HTTPStatus(said["statusCode"]), _without_escapes(said), _without_length(said["headers"]))


def _without_escapes(said: dict[str, Any]) -> str | None:
    """The body; a large one without the SDK's escapes, which make twice and more of what is not English."""
    body: str = said["body"]
    if len(body) > _LARGE and said["headers"].get("content-type") == "application/json":
        return compact(json.loads(body))
    return body or None


def _without_length(headers: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name != "content-length"}


def _refuse_foreign(headers: Mapping[str, str]) -> None:
    """Refuse pages elsewhere, which a browser here may have been led to: by their origin, or a name that leads here."""
    host = headers.get("host", "").lower()
    is_open = config().auth == "open"
    if is_open and re.sub(r":\d*$", "", host).strip("[]") not in _LOOPBACK:
        raise NotAllowed("This host name is not served without keys.", guidance="Call it by a loopback address.")
    origin = headers.get("origin")
    if origin is None:
        return
    try:
        parts = urlsplit(origin.lower())
        if parts.netloc == host or (is_open and parts.hostname in _LOOPBACK):
            return
    except ValueError:
        pass  # no address at all
    raise NotAllowed("Pages of this origin are not served.", guidance="Call from a program, or from a page here.")


def _authenticated_caller(headers: Mapping[str, str]) -> Caller:
    caller = caller_from_headers(headers)
    require_authenticated(caller)
    return caller


def _require_one_message(message: Any) -> None:
    if isinstance(message, list):
        raise InvalidRequest(details={"reason": "batches are no part of MCP: send one message a request"})
    if not is_encodable(message):
        require_text(message)
    if isinstance(message, dict) and not _is_id(message.get("id", "")):
        raise InvalidRequest(details={"reason": "'id' must be a string or a whole number"})
    if isinstance(message, dict) and not isinstance(message.get("params", {}), dict):
        raise InvalidRequest(details={"reason": "'params' must be an object"})
    try:
        jsonrpc_message_adapter.validate_python(message, by_name=False)
    except ValidationError:
        raise InvalidRequest(details={"reason": "the body is not one JSON-RPC message"}) from None


def _refusal(message: Any, error: KhoError) -> HttpResponse:
    id_ = message.get("id") if isinstance(message, dict) else None
    echoed = id_ if _is_id(id_) and is_encodable(id_) else None
    body = {"jsonrpc": "2.0", "id": echoed, "error": jsonrpc_error(error, "")}
    return HttpResponse(HTTPStatus.BAD_REQUEST, compact(body))


def _is_id(value: Any) -> bool:
    return isinstance(value, int | str) and not isinstance(value, bool)


def _mcp_headers_only(event: dict[str, Any]) -> dict[str, Any]:
    """The event with those headers alone that are MCP's business: of others, Mangum trips over some."""
    headers = event.get("headers") or {}
    kept = {
        name: value for name, value in headers.items() if name in ("accept", "content-type") or name.startswith("mcp-")
    }
    return event | {"headers": kept}
