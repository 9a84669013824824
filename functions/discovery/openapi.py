"""GET /openapi.json: every HTTP endpoint, generated from the catalogue's parameter and result models."""

from functools import cache
from http import HTTPStatus
from typing import Any, Final

from api import error_formats
from api.deployment import PUBLIC_URL, lambda_function
from api.http_events import HttpRequest, HttpResponse, endpoint
from api.openapi_schemas import (
    INFO_PATHS,
    SCHEMAS,
    inline_definitions,
    json_content,
    json_response,
    reference,
    without_object_defaults,
)
from endpoints import actions
from oauth.schemas import OAUTH_PATHS
from shared.platform.config import config
from shared.platform.version import VERSION
from shared.rpc import errors
from shared.rpc.catalogue import MethodEntry, catalogue
from shared.rpc.strict_json import compact

_KEY: Final[dict[str, list[str]]] = {"key": []}
_KEY_OR_NONE: Final = [_KEY, {}]
_TAGS: Final = {
    "actions": "agent-data's envelope.",
    "jsonrpc": "Every method over JSON-RPC 2.0.",
    "mcp": "Every tool, resource and prompt over the Model Context Protocol.",
    "oauth": "OAuth 2.1 for clients that cannot hold a key.",
    "devices": "What the firmware of boards calls.",
    "information": "Health, servers, metadata and this document.",
}
"""The subjects of operations that are no methods; those of methods are their servers."""
_DECLARED: Final = (errors.UnknownMethod, errors.MethodNotAllowed, errors.NotFound, errors.Conflict, errors.ToolFailed)
"""Kinds that only methods with them in `errors` raise. Any call can raise the others."""
_GATEWAY_STATUSES: Final = frozenset({401, 403, 413, 429, 500, 503})
"""The statuses with which API Gateway itself may answer: no credentials, over 10 MB, throttled, no function."""


@lambda_function(PUBLIC_URL, routes=("GET /openapi.json",))
@endpoint("discovery/openapi")
def handler(_request: HttpRequest) -> HttpResponse:
    """Answer with the OpenAPI document."""
    return HttpResponse(HTTPStatus.OK, compact(document()))


@cache
def document() -> dict[str, Any]:
    """Return the description of every HTTP endpoint in OpenAPI 3.1."""
    methods = {f"/{entry.name}": {"post": _method(entry)} for entry in catalogue().methods.values()}
    paths = INFO_PATHS | OAUTH_PATHS | {"/jsonrpc": {"post": _jsonrpc()}, "/actions": {"post": _actions()}} | methods
    servers = [{"name": each.name, "description": each.summary} for each in catalogue().servers.values()]
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Kho",
            "version": VERSION,
            "description": "Documents, memory, experiences, knowledge and devices for AI agents.",
        },
        "servers": [{"url": config().public_url or "/"}],
        "security": [_KEY] if config().auth == "required" else _KEY_OR_NONE,
        "tags": servers + [{"name": name, "description": description} for name, description in _TAGS.items()],
        "paths": {
            path: {verb: without_object_defaults(_described(path, operation)) for verb, operation in item.items()}
            for path, item in paths.items()
        },
        "components": {
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            "schemas": SCHEMAS,
        },
    }


def _described(path: str, operation: dict[str, Any]) -> dict[str, Any]:
    """Return the operation with a tag and a description."""
    first = path.split("/")[1]
    tag = "devices" if first in ("ota", "vision", "firmware") else first if first in _TAGS else "information"
    return {"tags": [tag], "description": operation["summary"]} | operation


def _method(entry: MethodEntry) -> dict[str, Any]:
    return {
        "operationId": entry.name.replace("/", "_"),
        "tags": [entry.server],
        "summary": entry.summary,
        "requestBody": {"required": bool(entry.params.get("required")), "content": json_content(entry.params)},
        "responses": {"200": json_response("The result.", entry.result)}
        | _failures(entry.errors, error_formats.dialect_of(entry.server).schema),
        **({"security": []} if entry.anonymous else {}),
    }


def _actions() -> dict[str, Any]:
    entries = [entry for entry in catalogue().methods.values() if entry.server == error_formats.AGENT_DATA]
    return {
        "operationId": "actions",
        "summary": "The methods of agent-data in its envelope.",
        "requestBody": {"required": True, "content": json_content({"oneOf": [_envelope(entry) for entry in entries]})},
        "responses": {
            "200": json_response(
                "The result, with the request's `request_id`.",
                {"anyOf": [entry.result for entry in entries]},
            )
        }
        | _failures(["UnknownMethod", *(name for entry in entries for name in entry.errors)], "ActionFailure"),
    }


def _envelope(entry: MethodEntry) -> dict[str, Any]:
    envelope = inline_definitions(actions.ActionEnvelope.model_json_schema())
    properties = {name: schema for name, schema in entry.params["properties"].items() if name != "request_id"}
    payload = entry.params | {"properties": properties}
    envelope["properties"] |= {"action": {"const": entry.name.partition("/")[2]}, "payload": payload}
    return envelope


def _jsonrpc() -> dict[str, Any]:
    request, response = reference("RpcRequest"), reference("RpcResponse")
    return {
        "operationId": "jsonrpc",
        "security": _KEY_OR_NONE,  # anonymous callers reach anonymous methods
        "summary": "JSON-RPC 2.0: single, batch and notifications; `method` is `{server}/{method}`.",
        "requestBody": {
            "required": True,
            "content": json_content(
                {"anyOf": [request, {"type": "array", "items": request, "minItems": 1, "maxItems": 50}]}
            ),
        },
        "responses": {
            "200": json_response(
                "One answer, or those of a batch.", {"anyOf": [response, {"type": "array", "items": response}]}
            ),
            "204": {"description": "Notifications have no answer."},
        }
        | _failures([], "Refusal"),
    }


def _failures(named: list[str], schema: str) -> dict[str, Any]:
    """Return the responses to the errors of any call and to the errors `named`."""
    kinds = [kind for kind in errors.KhoError.__subclasses__() if kind.__name__ in named or kind not in _DECLARED]
    either = {"anyOf": [reference(schema), reference("GatewayFailure")]}
    return {
        str(int(status)): json_response(status.phrase, either if status in _GATEWAY_STATUSES else reference(schema))
        for status in sorted(map(error_formats.status_of, kinds))
    }
