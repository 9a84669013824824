"""GET /openapi.json: every HTTP door, made from the catalogue's parameter and result models."""

from __future__ import annotations

from functools import cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from doors import dialects
from doors.http import Request, Response, door
from shared.rpc import errors
from shared.rpc.catalogue import catalogue
from shared.rpc.text import compact

if TYPE_CHECKING:
    from shared.rpc.catalogue import Entry

_ANY_METHOD: Final = (
    errors.ParseError,
    errors.InvalidRequest,
    errors.InvalidParams,
    errors.NotSignedIn,
    errors.NotAllowed,
    errors.TooLarge,
    errors.TooManyRequests,
    errors.Unavailable,
    errors.OutOfTime,
    errors.Internal,
)
_ID: Final = {"type": ["string", "number", "null"]}


@door("openapi")
def handler(_request: Request) -> Response:
    """Answer with the description of every HTTP door."""
    return Response(HTTPStatus.OK, compact(document()))


@cache
def document() -> dict[str, Any]:
    """The description of every HTTP door, in OpenAPI 3.1."""
    methods = {f"/{entry.name}": {"post": _direct(entry)} for entry in catalogue().methods.values()}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Kho",
            "version": "0.1.0",
            "description": "Documents, memory, experiences, knowledge and devices for AI agents.",
        },
        "security": [{"key": []}, {}],
        "paths": _INFO_PATHS | {"/jsonrpc": {"post": _jsonrpc()}} | methods,
        "components": {
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            "schemas": _SCHEMAS,
        },
    }


def _direct(entry: Entry) -> dict[str, Any]:
    failures = [
        kind for kind in errors.KhoError.__subclasses__() if kind.__name__ in entry.errors or kind in _ANY_METHOD
    ]
    statuses = sorted({dialects.status_of(kind) for kind in failures})
    return {
        "operationId": entry.name.replace("/", "_"),
        "tags": [entry.server],
        "summary": entry.summary,
        "requestBody": {"required": True, "content": _json(_inlined(entry.params))},
        "responses": {"200": _described("The result.", _inlined(entry.result))}
        | {
            str(int(status)): _described(status.phrase, {"$ref": "#/components/schemas/Failure"}) for status in statuses
        },
    }


def _jsonrpc() -> dict[str, Any]:
    request, response = {"$ref": "#/components/schemas/Request"}, {"$ref": "#/components/schemas/Response"}
    return {
        "operationId": "jsonrpc",
        "summary": "JSON-RPC 2.0: single, batch and notifications; `method` is `{server}/{method}`.",
        "requestBody": {
            "required": True,
            "content": _json({"anyOf": [request, {"type": "array", "items": request, "minItems": 1, "maxItems": 50}]}),
        },
        "responses": {
            "200": _described(
                "One answer, or those of a batch.", {"anyOf": [response, {"type": "array", "items": response}]}
            ),
            "204": {"description": "Notifications have no answer."},
        }
        | {
            str(int(status)): _described(status.phrase, {"$ref": "#/components/schemas/Failure"})
            for status in sorted({dialects.status_of(kind) for kind in _ANY_METHOD})
        },
    }


def _described(description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": description, "content": _json(schema)}


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _inlined(schema: dict[str, Any]) -> dict[str, Any]:
    """`schema` with its own definitions in place of references to them, for it stands inside another document."""
    definitions = schema.get("$defs", {})

    def resolved(node: Any) -> Any:
        if isinstance(node, dict):
            if "$ref" in node:
                return resolved(definitions[node["$ref"].removeprefix("#/$defs/")])
            return {key: resolved(value) for key, value in node.items() if key != "$defs"}
        return [resolved(item) for item in node] if isinstance(node, list) else node

    inlined: dict[str, Any] = resolved(schema)
    return inlined


_CAPABILITIES: Final = {
    "type": "object",
    "properties": {name: {"type": "array", "items": {"type": "object"}} for name in ("tools", "resources", "prompts")},
    "required": ["tools", "resources", "prompts"],
}

_SCHEMAS: Final = {
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

_INFO_PATHS: Final = {
    "/health": {
        "get": {
            "operationId": "health",
            "summary": "That the system answers, and which servers it has.",
            "security": [],
            "responses": {
                "200": _described(
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
            "summary": "Every server and what it can do.",
            "security": [],
            "responses": {
                "200": _described(
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
            "summary": "What one server can do.",
            "security": [],
            "parameters": [_NAMED_SERVER],
            "responses": {
                "200": _described(
                    "Its capabilities.",
                    {
                        "type": "object",
                        "properties": {"server_name": {"type": "string"}, "capabilities": _CAPABILITIES},
                        "required": ["server_name", "capabilities"],
                    },
                ),
                "404": _described("Unknown server.", {"$ref": "#/components/schemas/Failure"}),
            },
        }
    },
    "/openapi.json": {
        "get": {
            "operationId": "openapi",
            "summary": "This document.",
            "security": [],
            "responses": {"200": _described("OpenAPI 3.1.", {"type": "object"})},
        }
    },
}
