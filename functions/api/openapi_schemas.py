"""OpenAPI descriptions of the endpoints that are not methods, and the schemas that all share."""

from collections.abc import Collection
from typing import Any, Final

_TEXT: Final = {"type": "string"}
_INTEGER: Final = {"type": "integer"}
_OBJECT: Final = {"type": "object"}


def json_response(description: str, schema: dict[str, Any]) -> dict[str, Any]:
    """Return the description of a JSON response."""
    return {"description": description, "content": json_content(schema)}


def json_content(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def reference(schema: str) -> dict[str, Any]:
    """Return a reference to one of `SCHEMAS`."""
    return {"$ref": f"#/components/schemas/{schema}"}


def inline_definitions(schema: dict[str, Any]) -> dict[str, Any]:
    """Replace the schema's references to its `$defs` by the definitions, so that it can be embedded."""
    definitions = schema.get("$defs", {})

    def resolve(node: Any) -> Any:
        if isinstance(node, dict):
            if "$ref" in node:
                return resolve(definitions[node["$ref"].removeprefix("#/$defs/")])
            return {key: resolve(value) for key, value in node.items() if key != "$defs"}
        return [resolve(item) for item in node] if isinstance(node, list) else node

    inlined: dict[str, Any] = resolve(schema)
    return inlined


def without_object_defaults(schema: Any) -> Any:
    """Leave out defaults that are objects: generators of typed clients drop an operation whose field has one."""
    if isinstance(schema, dict):
        drops = "anyOf" in schema and isinstance(schema.get("default"), dict)
        kept = schema.keys() - {"default"} if drops else schema.keys()
        return {key: without_object_defaults(schema[key]) for key in schema if key in kept}
    return [without_object_defaults(each) for each in schema] if isinstance(schema, list) else schema


def _object(properties: dict[str, Any], *, optional: Collection[str] = (), **keywords: Any) -> dict[str, Any]:
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required, **keywords}


def _closed(properties: dict[str, Any], *, optional: Collection[str] = ()) -> dict[str, Any]:
    return _object(properties, optional=optional, additionalProperties=False)


def _array(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


_JSONRPC: Final = {"jsonrpc": {"const": "2.0"}}
_ID: Final = {"anyOf": [_TEXT, {"type": "number"}, {"type": "null"}]}
_PARAMS: Final = {"anyOf": [_OBJECT, _array({})]}
_DETAILS: Final = {"anyOf": [_OBJECT, _array(_object({"field": _TEXT, "message": _TEXT}))]}
_CAPABILITIES: Final = _object({name: _array({"type": "object"}) for name in ("tools", "resources", "prompts")})
_ERROR: Final = dict.fromkeys(("code", "message", "guidance"), _TEXT) | {"details": _DETAILS}

SCHEMAS: Final = {
    "McpMessage": _object(
        _JSONRPC | {"id": {"anyOf": [_TEXT, _INTEGER]}, "method": _TEXT, "params": {"type": "object"}},
        optional=("id", "params"),
    ),
    "GatewayFailure": _object({"message": _TEXT}),
    "Failure": _object({"error": _object(_ERROR)}),
    "RecallKitFailure": _closed(
        {
            "success": {"const": False},
            "error": _closed(
                {
                    "code": _TEXT,
                    "message": _TEXT,
                    "validation_errors": _array(_object({"field": _TEXT, "message": _TEXT})),
                    "details": {"type": "object"},
                },
                optional=("validation_errors", "details"),
            ),
        }
    ),
    "ActionFailure": _object({"error": _closed(_ERROR), "request_id": _TEXT}, optional=("request_id",)),
    "Refusal": {"anyOf": [reference("RpcResponse"), _array(reference("RpcResponse"))]},
    "RpcRequest": _object(_JSONRPC | {"method": _TEXT, "params": _PARAMS, "id": _ID}, optional=("params", "id")),
    "RpcResponse": _object(
        _JSONRPC
        | {
            "result": {},
            "error": _object({"code": {"type": "integer"}, "message": _TEXT, "data": {"type": "object"}}),
            "id": _ID,
        },
        optional=("result", "error"),
        oneOf=[{"required": ["result"]}, {"required": ["error"]}],
    ),
}

_MCP_ANSWER: Final = _object(_JSONRPC)
_MCP_MESSAGE: Final = {"required": True, "content": json_content(reference("McpMessage"))}
_MCP_RESPONSES: Final = {
    "200": json_response("The answer; a stream of events if there are notifications before it.", _MCP_ANSWER),
    "202": {"description": "Notifications have no answer."},
    "400": json_response("Not an MCP message.", _MCP_ANSWER),
    "401": json_response("Not signed in.", reference("Failure")),
    "403": json_response("Foreign origin or host name.", reference("Failure")),
    "406": json_response("The client accepts neither JSON nor events.", {"type": "object"}),
    "413": json_response("Too large.", {"anyOf": [_MCP_ANSWER, reference("Failure"), reference("GatewayFailure")]}),
}


def _get(operation: str, summary: str, responses: dict[str, Any], **keywords: Any) -> dict[str, Any]:
    return {"get": {"operationId": operation, "summary": summary, "security": [], **keywords, "responses": responses}}


def _path_parameter(name: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": _TEXT}


_BOARD_HEADERS: Final = [
    {"name": name, "in": "header", "required": True, "description": description, "schema": _TEXT | {"pattern": pattern}}
    for name, description, pattern in (
        ("Device-Id", "The board's hardware address.", "^[0-9a-f]{2}(:[0-9a-f]{2}){5}$"),
        ("Client-Id", "The board's UUID, a credential.", "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"),
    )
]


def _board(operation: str, summary: str, responses: dict[str, Any]) -> dict[str, Any]:
    failures = {
        "400": json_response("A header is malformed.", reference("Failure")),
        "413": json_response("A body over 256 KiB.", reference("Failure")),
        "429": json_response("Too many requests of unclaimed boards.", reference("Failure")),
        "503": json_response("The store does not answer.", reference("Failure")),
    }
    described = {"operationId": operation, "summary": summary, "security": [], "parameters": _BOARD_HEADERS}
    return {"post": described | {"responses": responses | failures}}


_CHECK_IN: Final = _object(
    {
        "server_time": _closed({"timestamp": _INTEGER, "timezone_offset": _INTEGER}),
        "mqtt": _closed(
            dict.fromkeys(("endpoint", "client_id", "username", "password", "publish_topic"), _TEXT)
            | {"keepalive": _INTEGER}
        ),
        "activation": _closed(dict.fromkeys(("code", "message", "challenge"), _TEXT) | {"timeout_ms": _INTEGER}),
    },
    optional=("mqtt", "activation"),
)

INFO_PATHS: Final = {
    "/health": _get(
        "health",
        "Report that the system is healthy, and list its servers.",
        {"200": json_response("Healthy.", _object({"status": {"const": "healthy"}, "servers": _array(_TEXT)}))},
    ),
    "/servers": _get(
        "servers",
        "List every server and its capabilities.",
        {
            "200": json_response(
                "The servers.",
                _object({"servers": _array(_object({"name": _TEXT, "capabilities": _CAPABILITIES}))}),
            )
        },
    ),
    "/servers/{server_name}/capabilities": _get(
        "capabilities",
        "List one server's capabilities.",
        {
            "200": json_response("Its capabilities.", _object({"server_name": _TEXT, "capabilities": _CAPABILITIES})),
            "404": json_response("Unknown server.", reference("Failure")),
        },
        parameters=[_path_parameter("server_name")],
    ),
    "/mcp": {
        "post": {
            "operationId": "mcp",
            "summary": "MCP over Streamable HTTP, one message a request: 2026-07-28, 2025-11-25, 2025-06-18.",
            "requestBody": _MCP_MESSAGE,
            "responses": _MCP_RESPONSES,
        }
    },
    "/mcp/recall-kit": {
        "post": {
            "operationId": "mcp_recall_kit",
            "summary": "The same without credentials, with recall-kit's tools alone.",
            "security": [],
            "requestBody": _MCP_MESSAGE,
            "responses": _MCP_RESPONSES,
        }
    },
    **{
        f"/.well-known/oauth-protected-resource{path}": _get(
            name,
            "Protected resource metadata: where MCP clients get tokens (RFC 9728).",
            {
                "200": json_response(
                    "The metadata, with the authorization server.", {"type": "object", "required": ["resource"]}
                ),
                "404": json_response("Nothing needs credentials here, or there is no endpoint.", reference("Failure")),
            },
            **({"parameters": [_path_parameter(parameter)]} if parameter else {}),
        )
        for path, name, parameter in (
            ("", "resource_metadata", ""),
            ("/mcp", "resource_metadata_mcp", ""),
            ("/mcp/{toolset}", "resource_metadata_toolset", "toolset"),
            ("/mcp/devices/{device_id}", "resource_metadata_device", "device_id"),
        )
    },
    "/ota": _board(
        "check_in",
        "Check-in of a stock board: the settings of its MQTT connection, or a code by which it is claimed.",
        {"200": json_response("The settings or the code, and the time.", _CHECK_IN)},
    ),
    "/ota/activate": _board(
        "activate",
        "Tell a stock board whether it was claimed.",
        {
            "200": json_response("Claimed: the board checks in.", {"type": "object"}),
            "202": json_response("Not yet.", {"type": "object"}),
        },
    ),
    "/firmware/{file}": _get(
        "firmware_file",
        "A file of firmware for stock boards, on one machine alone.",
        {
            "200": {"description": "The file, as an attachment.", "content": {"application/octet-stream": {}}},
            "404": json_response("There is no such file.", reference("Failure")),
        },
        parameters=[_path_parameter("file")],
    ),
    "/vision/explain": {
        "post": {
            "operationId": "explain_photo",
            "summary": "Answer a question about a photo; the bearer token is the one of a device's session.",
            "requestBody": {
                "required": True,
                "content": {
                    "multipart/form-data": {
                        "schema": _object(
                            {"question": _TEXT, "file": {"type": "string", "format": "binary"}},
                            optional=("question",),
                        )
                    }
                },
            },
            "responses": {
                "200": json_response(
                    "The answer, or in 'message' the reason why there is none.",
                    _closed(
                        {"success": {"type": "boolean"}, "response": _TEXT, "message": _TEXT},
                        optional=("response", "message"),
                    ),
                ),
                "401": json_response("No token, or none of the device's current session.", reference("Failure")),
            },
        }
    },
    "/openapi.json": _get("openapi", "This document.", {"200": json_response("OpenAPI 3.1.", {"type": "object"})}),
}
