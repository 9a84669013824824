"""Fixtures that the public conformance suite requires, added to Kho's own MCP server; not part of Kho."""

from __future__ import annotations

import asyncio
import json
import re
import warnings
from typing import TYPE_CHECKING, Any

from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from mcp_types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    CallToolRequestParams,
    CompleteRequestParams,
    GetPromptRequestParams,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    SetLevelRequestParams,
    SubscribeRequestParams,
    UnsubscribeRequestParams,
)

from api.mcp_server import server_for_catalog
from tests.suites.conformance.elicitation import INPUTS, ask, ask_in_rounds, elicit, responses, text, wanting

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp.server.context import HandlerResult, ServerRequestContext
    from mcp.server.lowlevel.server import Server
    from pydantic import BaseModel

    from shared.rpc.mcp_catalog import McpCatalog

    Context = ServerRequestContext[Any, Any]
    Tool = Callable[[Context, CallToolRequestParams], Awaitable[dict[str, Any]]]

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="


def embedded(uri: str, mime_type: str, said: str) -> dict[str, Any]:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": mime_type, "text": said}}


IMAGE = {"type": "image", "data": PNG, "mimeType": "image/png"}
CONTENT: dict[str, dict[str, Any]] = {
    "test_simple_text": text("This is a simple text response for testing."),
    "test_image_content": {"content": [IMAGE]},
    "test_audio_content": {"content": [{"type": "audio", "data": WAV, "mimeType": "audio/wav"}]},
    "test_embedded_resource": {
        "content": [embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")]
    },
    "test_multiple_content_types": {
        "content": [
            {"type": "text", "text": "Multiple content types test:"},
            IMAGE,
            embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
        ]
    },
    "test_error_handling": {**text("This tool intentionally returns an error for testing"), "isError": True},
    "test_custom_headers": text("The headers say what the arguments say."),
}


async def _progress(context: Context, _params: CallToolRequestParams) -> dict[str, Any]:
    for progress in (0, 50, 100):
        await context.session.report_progress(progress, 100)
        await asyncio.sleep(0.05)
    return text("Three notifications were sent.")


async def _logging(context: Context, _params: CallToolRequestParams) -> dict[str, Any]:
    for said in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MCPDeprecationWarning)
            await context.session.send_log_message("info", said, related_request_id=context.request_id)
        await asyncio.sleep(0.05)
    return text("Three messages were logged.")


async def _missing_capability(context: Context, _params: CallToolRequestParams) -> dict[str, Any]:
    if "sampling" not in _declared(context):
        needed: dict[str, Any] = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, "This tool needs the client's sampling.", needed)
    return text("The client can sample.")


def _declared(context: Context) -> dict[str, Any]:
    meta = (context.params or {}).get("_meta", {})
    declared: dict[str, Any] = meta.get("io.modelcontextprotocol/clientCapabilities", {})
    return declared


SPECIAL: dict[str, Tool] = {
    "test_tool_with_progress": _progress,
    "test_tool_with_logging": _logging,
    "test_logging_tool": _logging,
    "test_missing_capability": _missing_capability,
    "test_input_required_result_multi_round": ask_in_rounds,
    **dict.fromkeys(INPUTS, ask),
}
NESTED_SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
SCHEMAS: dict[str, dict[str, Any]] = {
    "json_schema_2020_12_tool": NESTED_SCHEMA,
    "test_custom_headers": {
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
    },
}
NAMES = [*CONTENT, *SPECIAL, "json_schema_2020_12_tool"]
TOOLS: list[dict[str, Any]] = [
    {
        "name": name,
        "description": "A tool of the conformance suite.",
        "inputSchema": SCHEMAS.get(name, {"type": "object", "properties": {}}),
    }
    for name in NAMES
]
RESOURCES: list[dict[str, Any]] = [
    {"uri": "test://static-text", "name": "text", "description": "Text.", "mimeType": "text/plain"},
    {"uri": "test://static-binary", "name": "binary", "description": "A picture.", "mimeType": "image/png"},
    {"uri": "test://watched-resource", "name": "watched", "description": "To be watched.", "mimeType": "text/plain"},
]
TEMPLATES: list[dict[str, Any]] = [
    {
        "uriTemplate": "test://template/{id}/data",
        "name": "template",
        "description": "Data by its id.",
        "mimeType": "application/json",
    }
]
_ARGUMENTS = [{"name": name, "description": "An argument.", "required": True} for name in ("arg1", "arg2")]
PROMPTS: list[dict[str, Any]] = [
    {"name": "test_simple_prompt", "description": "A prompt."},
    {"name": "test_prompt_with_arguments", "description": "A prompt.", "arguments": _ARGUMENTS},
    {
        "name": "test_prompt_with_embedded_resource",
        "description": "A prompt.",
        "arguments": [{"name": "resourceUri", "description": "What to embed.", "required": True}],
    },
    {"name": "test_prompt_with_image", "description": "A prompt."},
    {"name": "test_input_required_result_prompt", "description": "A prompt that asks."},
]


async def _call(context: Context, params: CallToolRequestParams) -> dict[str, Any] | None:
    if params.name in SPECIAL:
        return await SPECIAL[params.name](context, params)
    return text("Its schema is what matters.") if params.name in SCHEMAS else CONTENT.get(params.name)


async def _read(_context: Context, params: ReadResourceRequestParams) -> dict[str, Any] | None:
    read: dict[str, Any] = {"uri": params.uri}
    if params.uri in ("test://static-text", "test://watched-resource"):
        said = "This is the content of the static text resource."
        return {"contents": [read | {"mimeType": "text/plain", "text": said}]}
    if params.uri == "test://static-binary":
        return {"contents": [read | {"mimeType": "image/png", "blob": PNG}]}
    match = re.fullmatch(r"test://template/([^/]+)/data", params.uri)
    if not match:
        return None
    said = json.dumps({"id": match[1], "templateTest": True, "data": f"Data for ID: {match[1]}"})
    return {"contents": [read | {"mimeType": "application/json", "text": said}]}


async def _prompt(context: Context, params: GetPromptRequestParams) -> dict[str, Any] | None:
    arguments = params.arguments or {}
    contents: list[dict[str, Any]]
    match params.name:
        case "test_simple_prompt":
            contents = text("This is a simple prompt for testing.")["content"]
        case "test_prompt_with_arguments":
            contents = text(f"Prompt with arguments: arg1='{arguments['arg1']}', arg2='{arguments['arg2']}'")["content"]
        case "test_prompt_with_embedded_resource":
            resource = embedded(arguments["resourceUri"], "text/plain", "Embedded resource content for testing.")
            contents = [resource, {"type": "text", "text": "Please process the embedded resource above."}]
        case "test_prompt_with_image":
            contents = [IMAGE, {"type": "text", "text": "Please analyze the image above."}]
        case "test_input_required_result_prompt":
            schema = {"type": "object", "properties": {"context": {"type": "string"}}, "required": ["context"]}
            if "user_context" not in responses(context):
                return wanting({"user_context": elicit("What context should the prompt use?", schema)})
            contents = text(f"The context is {responses(context)['user_context']}.")["content"]
        case _:
            return None
    return {"messages": [{"role": "user", "content": each} for each in contents]}


async def _complete(_context: Context, params: CompleteRequestParams) -> dict[str, Any] | None:
    if getattr(params.ref, "name", None) == "test_prompt_with_arguments":
        return {"completion": {"values": ["testing"], "total": 1, "hasMore": False}}
    return None


def server_with_fixtures(catalog: McpCatalog) -> Server[Any]:
    """Return Kho's own server of `catalog` with the suite's fixtures listed first."""
    server = server_for_catalog(catalog)
    own = server.get_tool_input_schema
    assert own
    server.get_tool_input_schema = lambda name: SCHEMAS.get(name) or own(name)
    override_method(server, "tools/call", CallToolRequestParams, _call)
    override_method(server, "resources/read", ReadResourceRequestParams, _read)
    override_method(server, "prompts/get", GetPromptRequestParams, _prompt)
    override_method(server, "completion/complete", CompleteRequestParams, _complete)
    prepend_listed(server, "tools/list", "tools", TOOLS)
    prepend_listed(server, "resources/list", "resources", RESOURCES)
    prepend_listed(server, "resources/templates/list", "resourceTemplates", TEMPLATES)
    prepend_listed(server, "prompts/list", "prompts", PROMPTS)
    for method, params in (
        ("logging/setLevel", SetLevelRequestParams),
        ("resources/subscribe", SubscribeRequestParams),
        ("resources/unsubscribe", UnsubscribeRequestParams),
    ):
        server.add_request_handler(method, params, _nothing)
    return server


async def _nothing(_context: Context, _params: BaseModel) -> HandlerResult:
    return {}


def override_method(
    server: Server[Any],
    method: str,
    params: type[BaseModel],
    fixture: Callable[[Context, Any], Awaitable[dict[str, Any] | None]],
) -> None:
    """Answer `method` with the fixture, or with Kho if the fixture returns nothing."""
    own = server.get_request_handler(method)
    assert own

    async def handle(context: Context, read: BaseModel) -> HandlerResult:
        answer = await fixture(context, read)
        return await own.handler(context, read) if answer is None else {"resultType": "complete"} | answer

    server.add_request_handler(method, params, handle)


def prepend_listed(server: Server[Any], method: str, things: str, fixtures: list[dict[str, Any]]) -> None:
    """List the fixtures before what Kho lists."""
    own = server.get_request_handler(method)
    assert own

    async def handle(context: Context, read: PaginatedRequestParams) -> HandlerResult:
        answer = await own.handler(context, read)
        assert isinstance(answer, dict)
        return answer | {things: fixtures + answer[things]}

    server.add_request_handler(method, PaginatedRequestParams, handle)
