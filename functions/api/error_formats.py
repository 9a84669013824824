"""Error formats: HTTP status, JSON-RPC code and body of each error, by endpoint and server."""

from http import HTTPStatus
from typing import Any

from shared.rpc import errors
from shared.rpc.errors import KhoError

_TABLE: dict[type[KhoError], tuple[HTTPStatus, int]] = {
    errors.ParseError: (HTTPStatus.BAD_REQUEST, -32700),
    errors.InvalidRequest: (HTTPStatus.BAD_REQUEST, -32600),
    errors.UnknownMethod: (HTTPStatus.NOT_FOUND, -32601),
    errors.MethodNotAllowed: (HTTPStatus.METHOD_NOT_ALLOWED, -32601),
    errors.InvalidParams: (HTTPStatus.BAD_REQUEST, -32602),
    errors.NotSignedIn: (HTTPStatus.UNAUTHORIZED, 401),
    errors.NotAllowed: (HTTPStatus.FORBIDDEN, 403),
    errors.NotFound: (HTTPStatus.NOT_FOUND, 404),
    errors.Conflict: (HTTPStatus.CONFLICT, 409),
    errors.TooLarge: (HTTPStatus.REQUEST_ENTITY_TOO_LARGE, 413),
    errors.TooManyRequests: (HTTPStatus.TOO_MANY_REQUESTS, 429),
    errors.ToolFailed: (HTTPStatus.BAD_GATEWAY, 502),
    errors.Unavailable: (HTTPStatus.SERVICE_UNAVAILABLE, 503),
    errors.OutOfTime: (HTTPStatus.GATEWAY_TIMEOUT, 504),
    errors.Internal: (HTTPStatus.INTERNAL_SERVER_ERROR, -32603),
}

_SERVERS: dict[str, dict[type[KhoError], int]] = {
    "memory-server": {errors.NotFound: -32001},
    "tool-server": {errors.NotFound: -32001, errors.ToolFailed: -32002},
    "research-agent": {errors.Unavailable: -32000, errors.OutOfTime: -32000, errors.Internal: -32000},
}
_CATEGORIES: dict[str, dict[str, int]] = {
    "research-agent": {"CONFIGURATION": -32001, "COLLECTION": -32002, "DOCUMENT": -32003, "QUERY": -32004},
}
"""Servers that number errors by category: the first word of the error code."""

AGENT_DATA = "agent-data"
JSONRPC = "jsonrpc"
"""The format of the JSON-RPC endpoint, which belongs to no server."""
RECALL_KIT = "recall-kit"
"""The server whose errors have the same format at every endpoint; others' errors have the endpoint's format."""
_RECALL_KIT_CODES: dict[type[KhoError], str] = {errors.Unavailable: "DATABASE_ERROR", errors.OutOfTime: "TIMEOUT"}
_INVALID, _FAILED = "VALIDATION_ERROR", "Validation failed"
_NOT_SANITIZED = "CONTEXT_NOT_SANITIZED"
_DEVICE_ERROR = "DEVICE_ERROR"
"""An error of the device itself; its code and message are passed on."""
_RETRY_AFTER_SECONDS = 1
_RETRYABLE_CODES = frozenset({"IN_PROGRESS"})


def status_of(kind: type[KhoError]) -> HTTPStatus:
    """Return the HTTP status of errors of this kind."""
    return _TABLE[kind][0]


def http_body(error: KhoError, server: str = "", request_id: str | None = None) -> dict[str, Any]:
    """Return the HTTP body of `error` in the format of `server`, with agent-data's request id."""
    if server == RECALL_KIT:
        return recall_kit_body(error)
    body: dict[str, Any] = {"error": error.facts()}
    return body if request_id is None else body | {"request_id": request_id}


def recall_kit_body(error: KhoError) -> dict[str, Any]:
    """Return `error` in recall-kit's format, which is the same at every endpoint."""
    if isinstance(error, errors.InvalidParams):
        return {"success": False, "error": _validation_error(error)}
    code = _RECALL_KIT_CODES.get(type(error), error.code)
    known = error.details if isinstance(error.details, dict) else {}
    return {
        "success": False,
        "error": {"code": code, "message": error.message, "details": {"guidance": error.guidance} | known},
    }


def _validation_error(error: errors.InvalidParams) -> dict[str, Any]:
    problems = {"validation_errors": error.details}
    if error.code == _NOT_SANITIZED:
        details = {"code": error.code, "guidance": error.guidance}
        return {"code": _INVALID, "message": _FAILED} | problems | {"details": details}
    if error.code == type(error).code:
        return {"code": _INVALID, "message": _FAILED} | problems
    return {"code": error.code, "message": error.message.removeprefix(f"{error.summary}: ")} | problems


def http_headers(error: KhoError) -> dict[str, str]:
    """Return the Retry-After, WWW-Authenticate or Allow header, if one applies."""
    if isinstance(error, errors.NotSignedIn):
        return {"www-authenticate": "Bearer"}
    if isinstance(error, errors.MethodNotAllowed):
        return {"allow": ", ".join(error.details["allowed"])}
    retryable = error.retryable or error.code in _RETRYABLE_CODES
    known = error.details if isinstance(error.details, dict) else {}
    after = known.get("retry_after_seconds", _RETRY_AFTER_SECONDS)
    return {"retry-after": str(after)} if retryable else {}


def jsonrpc_error(error: KhoError, server: str) -> dict[str, Any]:
    """Return the JSON-RPC error object of `error` for `server`."""
    code = _code_of(error, server)
    if error.code == _DEVICE_ERROR:
        return {"code": error.details["code"], "message": error.message, "data": _data(error)}
    # Codes of the specification keep its messages; data has the details.
    predefined = -32768 <= code <= -32600
    return {
        "code": code,
        "message": error.summary if predefined else error.message,
        "data": _data(error),
    }


def _data(error: KhoError) -> dict[str, Any]:
    return {"code": error.code, "details": error.details, "guidance": error.guidance}


def _code_of(error: KhoError, server: str) -> int:
    category = _CATEGORIES.get(server, {}).get(error.code.partition("_")[0])
    return category or _SERVERS.get(server, {}).get(type(error), _TABLE[type(error)][1])
