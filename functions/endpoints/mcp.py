"""POST /mcp, POST /mcp/{toolset}: MCP over Streamable HTTP, stateless: all tools, resources and prompts, or a subset.

The official SDK implements the protocol. This endpoint first checks what the SDK would let through or answer with an
exception's text: Host and Origin, credentials, and that the body is one message.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from http import HTTPStatus
from typing import Any, Final

from mcp_types.jsonrpc import jsonrpc_message_adapter
from pydantic import ValidationError

from api.authentication import authenticated_caller, caller_from_headers
from api.deployment import CREDENTIALS, MCP_SDK, lambda_function, mcp_routes
from api.error_formats import status_of
from api.http_events import HttpRequest, HttpResponse, error_response, fits_event, respond
from api.jsonrpc_requests import MAX_ID_CHARACTERS, principal_problem
from api.mcp_errors import REVISIONS, error_record, unsupported_revision, with_data
from api.mcp_server import server_for_catalog
from api.mcp_transport import McpRequestContext, McpTransport
from shared.access.oauth.resources import challenge
from shared.platform.config import config
from shared.platform.telemetry import set_traceparent
from shared.rpc.caller import Caller
from shared.rpc.catalogue import catalogue
from shared.rpc.errors import (
    InvalidParams,
    InvalidRequest,
    MethodNotAllowed,
    NotFound,
    NotSignedIn,
    ParseError,
    TooLarge,
)
from shared.rpc.mcp_catalog import TOOLSETS, mcp_catalog
from shared.rpc.strict_json import compact, encodable, is_encodable
from shared.rpc.unknown_fields import MAX_VALUES, crowded_field, many_unknown_fields, refuse_large_params
from shared.rpc.web_origin import refuse_foreign_pages

_LARGE: Final = 64 * 1024
_MAX_UNKNOWN: Final = 1000
"""Unknown members of a message, which the SDK ignores."""
_MAX_ECHOED: Final = 64
_MEMBERS: Final = ("jsonrpc", "id", "method", "params", "result", "error")
_PARAMS: Final = ("name", "arguments", "uri", "cursor", "_meta", "protocolVersion", "capabilities", "clientInfo")


@lambda_function(
    CREDENTIALS,
    MCP_SDK,
    memory=1024,
    timeout=28,
    invokes=("*",),
    routes=mcp_routes("/mcp", "/mcp/{toolset}"),
)
def handler(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    """Answer one MCP message."""
    toolset = (event.get("pathParameters") or {}).get("toolset")
    return handle_message(event, _transport(toolset) if toolset in (None, *TOOLSETS) else None)


def handle_message(
    event: dict[str, Any], transport: McpTransport | None, *, open_to_all: bool = False
) -> dict[str, Any]:
    """Answer the gateway's event through `transport`, which is None if there is no such toolset."""
    admit = caller_from_headers if open_to_all else authenticated_caller
    return respond("endpoints/mcp", event, partial(_answer, event=event, transport=transport, admit=admit))


@cache
def _transport(toolset: str | None) -> McpTransport:
    """Return the transport of a toolset, or of all tools."""
    if toolset is None:
        return McpTransport(server_for_catalog(mcp_catalog()))
    subject, methods = TOOLSETS[toolset]
    return McpTransport(server_for_catalog(mcp_catalog().of(*methods), subject))


def _answer(
    request: HttpRequest,
    *,
    event: dict[str, Any],
    transport: McpTransport | None,
    admit: Callable[[HttpRequest], Caller],
) -> HttpResponse:
    if event["requestContext"]["http"]["method"] != "POST":
        raise MethodNotAllowed("POST")  # it keeps no sessions and opens no streams
    refuse_foreign_pages(request.headers, is_open=config().auth == "open", origins=config().cors_origins)
    try:
        caller = admit(request)
    except NotSignedIn as error:
        has_credentials = "authorization" in request.headers
        header = challenge(request.path, config().public_url, has_credentials=has_credentials)
        return replace(error_response(request, error, ""), headers={"www-authenticate": header})
    if transport is None:
        raise NotFound(
            "There is no such toolset.",
            details={"toolset": encodable(request.path_parameters["toolset"])[:_MAX_ECHOED]},
            guidance=f"Choose one of {', '.join(TOOLSETS)}, or /mcp for all tools.",
        )
    message: Any = None
    try:
        message = request.text_json(caller)
        _require_one_message(message)
    except (ParseError, InvalidRequest, InvalidParams, TooLarge) as error:
        return _refusal(message, error_record(error), status_of(type(error)))
    if unsupported := unsupported_revision(request.headers.get("mcp-protocol-version", REVISIONS[0])):
        return _refusal(message, unsupported)
    meta = message.get("params", {}).get("_meta")
    set_traceparent(meta.get("traceparent") if isinstance(meta, dict) else None)
    context = McpRequestContext(caller, request.correlation_id, request.path_parameters.get("device_id", ""))
    refusal = _refused_arguments(message)
    if refusal:
        # The SDK copies arguments several times: it gets none, and the call fails in the format of its revision.
        message = _without_arguments(message)
        event = event | {"body": compact(message), "isBase64Encoded": False}
        context = replace(context, refusal=refusal)
    answer = partial(_response_of, transport, _mcp_headers_only(event), message)
    response = answer(context)
    if response.body and not fits_event(response.body):
        return answer(replace(context, refusal=TooLarge("The answer exceeds 6 MB.")))
    return response


def _response_of(
    transport: McpTransport, event: dict[str, Any], message: Any, context: McpRequestContext
) -> HttpResponse:
    response = transport.answer(event, message, context)
    headers = {name: value for name, value in response["headers"].items() if name != "content-length"}
    status = HTTPStatus(response["statusCode"])
    return HttpResponse(
        status, _unescaped_body(response) if status < HTTPStatus.BAD_REQUEST else _with_data(response), headers
    )


def _with_data(response: dict[str, Any]) -> str:
    """Return the body of a refusal of the SDK's transport, with the contract's `data`."""
    answer = json.loads(response["body"])
    return compact(answer | {"error": with_data(answer["error"])})


def _unescaped_body(response: dict[str, Any]) -> str | None:
    """Return the body, a large one without the SDK's Unicode escapes, which at least double text that is not ASCII."""
    body: str = response["body"]
    if len(body) > _LARGE and "\\u" in body and response["headers"].get("content-type") == "application/json":
        return compact(json.loads(body))
    return body or None


def _require_one_message(message: Any) -> None:
    if isinstance(message, list):
        raise InvalidRequest(details={"reason": "MCP has no batches: send one message a request"})
    if isinstance(message, dict):
        for member, known in ((message, _MEMBERS), (message.get("params"), _PARAMS)):
            problem = many_unknown_fields(member, known, _MAX_UNKNOWN) if isinstance(member, dict) else None
            if problem:
                raise InvalidRequest(details={"reason": f"the message {problem}"})
        if crowded_field(_without_arguments(message)) is not None:
            raise InvalidRequest(details={"reason": f"the message holds more than {MAX_VALUES:,} values"})
    if isinstance(message, dict) and not _is_id(message.get("id", "")):
        raise InvalidRequest(
            details={"reason": f"'id' must be a string of at most {MAX_ID_CHARACTERS} characters or a whole number"}
        )
    if isinstance(message, dict) and not isinstance(message.get("params", {}), dict):
        raise InvalidRequest(details={"reason": "'params' must be an object"})
    if problem := principal_problem(message):
        raise InvalidRequest(details={"reason": problem})
    try:
        jsonrpc_message_adapter.validate_python(message, by_name=False)
    except ValidationError:
        raise InvalidRequest(details={"reason": "the body is not one JSON-RPC message"}) from None


def _without_arguments(message: dict[str, Any]) -> dict[str, Any]:
    """Return the message without the arguments of a tool call, which are refused in the format of its revision."""
    params = message.get("params")
    if message.get("method") != "tools/call" or not isinstance(params, dict):
        return message
    arguments = params.get("arguments")
    return message | {"params": params | {"arguments": {}}} if isinstance(arguments, dict) else message


def _refusal(message: Any, error: dict[str, Any], status: HTTPStatus = HTTPStatus.BAD_REQUEST) -> HttpResponse:
    id_ = message.get("id") if isinstance(message, dict) else None
    echoed = id_ if _is_id(id_) and is_encodable(id_) else None
    body = {"jsonrpc": "2.0", "id": echoed, "error": error}
    return HttpResponse(status, compact(body))


def _refused_arguments(message: dict[str, Any]) -> InvalidParams | None:
    """Return the error of a tool call with many unknown arguments or many values, or None."""
    params = message.get("params", {})
    arguments, name = params.get("arguments"), params.get("name")
    if message.get("method") != "tools/call" or not isinstance(arguments, dict):
        return None
    tool = next((each for each in mcp_catalog().tools if each.name == name and not each.by_name), None)
    try:
        refuse_large_params(arguments, catalogue().methods[tool.method].fields if tool else None)
    except InvalidParams as error:
        return error
    return None


def _is_id(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= MAX_ID_CHARACTERS
    return isinstance(value, int) and not isinstance(value, bool)


def _mcp_headers_only(event: dict[str, Any]) -> dict[str, Any]:
    """Return the event with MCP's headers alone. Mangum fails on some others."""
    headers = event.get("headers") or {}
    relevant = {
        name: value for name, value in headers.items() if name in ("accept", "content-type") or name.startswith("mcp-")
    }
    return event | {"headers": relevant}
