"""OpenAPI descriptions of the endpoints that are not methods, and the schemas that all share."""

from typing import Any, Final

_ID: Final = {"type": ["string", "number", "null"]}


def json_response(description: str, schema: dict[str, Any]) -> dict[str, Any]:
    """Return the description of a JSON response."""
    return {"description": description, "content": json_content(schema)}


def json_content(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


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


_CAPABILITIES: Final = {
    "type": "object",
    "properties": {name: {"type": "array", "items": {"type": "object"}} for name in ("tools", "resources", "prompts")},
    "required": ["tools", "resources", "prompts"],
}

_ANSWER: Final = {"type": "object", "properties": {"jsonrpc": {"const": "2.0"}}, "required": ["jsonrpc"]}

SCHEMAS: Final = {
    "Message": {
        "type": "object",
        "properties": {
            "jsonrpc": {"const": "2.0"},
            "id": {"type": ["string", "integer"]},
            "method": {"type": "string"},
            "params": {"type": "object"},
        },
        "required": ["jsonrpc", "method"],
    },
    "Failure": {
        "type": "object",
        "properties": {
            "error": {
                "type": "object",
                "properties": {
                    "code": {"type": "string"},
                    "message": {"type": "string"},
                    "details": {"type": ["object", "array"]},
                    "guidance": {"type": "string"},
                },
                "required": ["code", "message", "details", "guidance"],
            }
        },
        "required": ["error"],
    },
    "RecallKitFailure": {
        "type": "object",
        "properties": {
            "success": {"const": False},
            "error": {
                "type": "object",
                "properties": {
                    "code": {"type": "string"},
                    "message": {"type": "string"},
                    "validation_errors": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "properties": {"field": {"type": "string"}, "message": {"type": "string"}},
                            "required": ["field", "message"],
                        },
                    },
                    "details": {"type": "object"},
                },
                "required": ["code", "message"],
                "additionalProperties": False,
            },
        },
        "required": ["success", "error"],
        "additionalProperties": False,
    },
    "ActionFailure": {
        "type": "object",
        "properties": {
            "error": {
                "type": "object",
                "properties": {
                    "code": {"type": "string"},
                    "message": {"type": "string"},
                    "details": {"type": ["object", "array"]},
                },
                "required": ["code", "message", "details"],
                "additionalProperties": False,
            },
            "request_id": {"type": "string"},
        },
        "required": ["error"],
    },
    "Request": {
        "type": "object",
        "properties": {
            "jsonrpc": {"const": "2.0"},
            "method": {"type": "string"},
            "params": {"type": ["object", "array"]},
            "id": _ID,
        },
        "required": ["jsonrpc", "method"],
    },
    "Response": {
        "type": "object",
        "properties": {
            "jsonrpc": {"const": "2.0"},
            "result": {},
            "error": {
                "type": "object",
                "properties": {"code": {"type": "integer"}, "message": {"type": "string"}, "data": {"type": "object"}},
                "required": ["code", "message", "data"],
            },
            "id": _ID,
        },
        "required": ["jsonrpc", "id"],
        "oneOf": [{"required": ["result"]}, {"required": ["error"]}],
    },
}

_NAMED_SERVER: Final = {"name": "server_name", "in": "path", "required": True, "schema": {"type": "string"}}

_MCP_ANSWERS: Final = {
    "200": json_response("The answer; a stream of events if there are notifications before it.", _ANSWER),
    "202": {"description": "Notifications have no answer."},
    "400": json_response("Not an MCP message.", _ANSWER),
    "401": json_response("Not signed in.", {"$ref": "#/components/schemas/Failure"}),
    "403": json_response("Foreign origin or host name.", {"$ref": "#/components/schemas/Failure"}),
    "406": json_response("The client accepts neither JSON nor events.", {"type": "object"}),
    "413": json_response("Too large.", {"$ref": "#/components/schemas/Failure"}),
}
_MCP_MESSAGE: Final = {"required": True, "content": json_content({"$ref": "#/components/schemas/Message"})}

INFO_PATHS: Final = {
    "/health": {
        "get": {
            "operationId": "health",
            "summary": "Report that the system is healthy, and list its servers.",
            "security": [],
            "responses": {
                "200": json_response(
                    "Healthy.",
                    {
                        "type": "object",
                        "properties": {
                            "status": {"const": "healthy"},
                            "servers": {"type": "array", "items": {"type": "string"}},
                        },
                        "required": ["status", "servers"],
                    },
                )
            },
        }
    },
    "/servers": {
        "get": {
            "operationId": "servers",
            "summary": "List every server and its capabilities.",
            "security": [],
            "responses": {
                "200": json_response(
                    "The servers.",
                    {
                        "type": "object",
                        "properties": {
                            "servers": {
                                "type": "array",
                                "items": {
                                    "type": "object",
                                    "properties": {"name": {"type": "string"}, "capabilities": _CAPABILITIES},
                                    "required": ["name", "capabilities"],
                                },
                            }
                        },
                        "required": ["servers"],
                    },
                )
            },
        }
    },
    "/servers/{server_name}/capabilities": {
        "get": {
            "operationId": "capabilities",
            "summary": "List one server's capabilities.",
            "security": [],
            "parameters": [_NAMED_SERVER],
            "responses": {
                "200": json_response(
                    "Its capabilities.",
                    {
                        "type": "object",
                        "properties": {"server_name": {"type": "string"}, "capabilities": _CAPABILITIES},
                        "required": ["server_name", "capabilities"],
                    },
                ),
                "404": json_response("Unknown server.", {"$ref": "#/components/schemas/Failure"}),
            },
        }
    },
    "/mcp": {
        "post": {
            "operationId": "mcp",
            "summary": "MCP over Streamable HTTP, one message a request: 2026-07-28, 2025-11-25, 2025-06-18.",
            "requestBody": _MCP_MESSAGE,
            "responses": _MCP_ANSWERS,
        }
    },
    "/mcp/recall-kit": {
        "post": {
            "operationId": "mcp_recall_kit",
            "summary": "The same without credentials, with recall-kit's tools alone.",
            "security": [],
            "requestBody": _MCP_MESSAGE,
            "responses": _MCP_ANSWERS,
        }
    },
    **{
        f"/.well-known/oauth-protected-resource{path}": {
            "get": {
                "operationId": f"resource_metadata{path.replace('/', '_')}",
                "summary": "Protected resource metadata: where MCP clients get credentials (RFC 9728).",
                "security": [],
                "responses": {
                    "200": json_response(
                        "The metadata, with the authorization servers.", {"type": "object", "required": ["resource"]}
                    ),
                    "404": json_response("Nothing needs credentials here.", {"$ref": "#/components/schemas/Failure"}),
                },
            }
        }
        for path in ("", "/mcp")
    },
    "/openapi.json": {
        "get": {
            "operationId": "openapi",
            "summary": "This document.",
            "security": [],
            "responses": {"200": json_response("OpenAPI 3.1.", {"type": "object"})},
        }
    },
}
