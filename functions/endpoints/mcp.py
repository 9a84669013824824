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

from api.authentication import authenticated_caller, caller_from_headers
from api.deployment import CREDENTIALS, MCP_SDK, lambda_function, mcp_routes
from api.error_formats import status_of
from api.http_events import HttpRequest, HttpResponse, error_response, fits_event, respond
from api.mcp_errors import REVISIONS, error_record, unsupported_revision, with_data
from api.mcp_messages import refusal, require_one_message, without_arguments
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
from shared.rpc.strict_json import compact, encodable
from shared.rpc.unknown_fields import refuse_large_params
from shared.rpc.web_origin import refuse_foreign_pages

_LARGE: Final = 64 * 1024
_MAX_ECHOED: Final = 64


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
    chosen = TOOLSETS[toolset]
    return McpTransport(server_for_catalog(mcp_catalog().of_toolset(chosen), chosen.subject))


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
        require_one_message(message)
    except (ParseError, InvalidRequest, InvalidParams, TooLarge) as error:
        return HttpResponse(status_of(type(error)), compact(refusal(message, error_record(error))))
    if unsupported := unsupported_revision(request.headers.get("mcp-protocol-version", REVISIONS[0])):
        return HttpResponse(HTTPStatus.BAD_REQUEST, compact(refusal(message, unsupported)))
    meta = message.get("params", {}).get("_meta")
    set_traceparent(meta.get("traceparent") if isinstance(meta, dict) else None)
    context = McpRequestContext(caller, request.correlation_id, request.path_parameters.get("device_id", ""))
    refused = _refused_arguments(message)
    if refused:
        # The SDK copies arguments several times: it gets none, and the call fails in the format of its revision.
        message = without_arguments(message)
        event = event | {"body": compact(message), "isBase64Encoded": False}
        context = replace(context, refusal=refused)
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


def _mcp_headers_only(event: dict[str, Any]) -> dict[str, Any]:
    """Return the event with MCP's headers alone. Mangum fails on some others."""
    headers = event.get("headers") or {}
    relevant = {
        name: value for name, value in headers.items() if name in ("accept", "content-type") or name.startswith("mcp-")
    }
    return event | {"headers": relevant}
