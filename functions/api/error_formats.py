"""Error formats: HTTP status, JSON-RPC code and body of each error, by endpoint and server."""

from __future__ import annotations

from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, ClassVar, Final

from api.jsonrpc_requests import MAX_BATCH, echoed_id
from shared.rpc import errors
from shared.rpc.errors import KhoError
from shared.rpc.strict_json import parse

if TYPE_CHECKING:
    from api.http_events import HttpRequest

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

AGENT_DATA = "agent-data"
RECALL_KIT = "recall-kit"
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


@dataclass(frozen=True)
class Dialect:
    """The format of a server's errors at every endpoint, or of an endpoint's errors that belong to no server."""

    schema: str = "Failure"
    """The name of the HTTP body's schema in the OpenAPI document."""
    numbers: dict[type[KhoError], int] = field(default_factory=dict)
    """Numbers that differ from those of other servers."""
    categories: dict[str, int] = field(default_factory=dict)
    """Numbers by the first word of the error code."""
    is_jsonrpc_result: ClassVar[bool] = False
    """True if an error is a JSON-RPC result."""

    def http_body(self, error: KhoError, _request: HttpRequest) -> Any:
        """Return the body of the HTTP response to `request`."""
        return {"error": error.facts()}

    def code(self, error: KhoError) -> str:
        """Return the code by which clients of the server know the error."""
        return error.code

    def tool_facts(self, error: KhoError) -> dict[str, Any]:
        """Return the structured content of an MCP tool's result."""
        return error.facts() | {"number": self.number(error)}

    def number(self, error: KhoError) -> int:
        """Return the code of the JSON-RPC error. An error of a device has the device's own."""
        if error.code == _DEVICE_ERROR:
            return int(error.details["code"])
        category = self.categories.get(error.code.partition("_")[0])
        return category or self.numbers.get(type(error), _TABLE[type(error)][1])

    def jsonrpc_error(self, error: KhoError) -> dict[str, Any]:
        """Return the JSON-RPC error object."""
        number = self.number(error)
        # Codes of the specification keep its messages; data has the details.
        predefined = -32768 <= number <= -32600 and error.code != _DEVICE_ERROR
        data = {"code": error.code, "details": error.details, "guidance": error.guidance}
        return {"code": number, "message": error.summary if predefined else error.message, "data": data}

    def jsonrpc_response(self, id_: Any, error: KhoError) -> dict[str, Any]:
        """Return the JSON-RPC response to the request of this id."""
        failed = {"result": self.tool_facts(error)} if self.is_jsonrpc_result else {"error": self.jsonrpc_error(error)}
        return {"jsonrpc": "2.0", **failed, "id": id_}


class _AgentData(Dialect):
    def http_body(self, error: KhoError, request: HttpRequest) -> Any:
        request_id = request.request_id()
        return {"error": error.facts()} | ({} if request_id is None else {"request_id": request_id})


class _RecallKit(Dialect):
    """The format of recall-kit, which is the same at every endpoint."""

    is_jsonrpc_result = True

    def http_body(self, error: KhoError, _request: HttpRequest) -> Any:
        return self.tool_facts(error)

    def code(self, error: KhoError) -> str:
        if isinstance(error, errors.InvalidParams):
            return _INVALID if error.code in (type(error).code, _NOT_SANITIZED) else error.code
        return _RECALL_KIT_CODES.get(type(error), error.code)

    def tool_facts(self, error: KhoError) -> dict[str, Any]:
        code, details = self.code(error), {"guidance": error.guidance}
        facts: dict[str, Any] = {"code": code, "message": error.message}
        if not isinstance(error, errors.InvalidParams):
            facts["details"] = details | (error.details if isinstance(error.details, dict) else {})
        else:
            facts["message"] = _FAILED if code == _INVALID else error.message.removeprefix(f"{error.summary}: ")
            facts["validation_errors"] = error.details
            if error.code == _NOT_SANITIZED:
                facts["details"] = details | {"code": error.code}
        return {"success": False, "error": facts}


class _JsonRpc(Dialect):
    """The format of a body that is refused as a whole: the error for each of its requests."""

    def http_body(self, error: KhoError, request: HttpRequest) -> Any:
        try:
            requests = parse(request.body)
        except errors.ParseError:
            requests = None
        if isinstance(requests, list) and 1 <= len(requests) <= MAX_BATCH:
            return [self.jsonrpc_response(echoed_id(each), error) for each in requests]
        return self.jsonrpc_response(echoed_id(requests), error)


DIALECT: Final = Dialect()
"""The dialect of servers and endpoints without one of their own."""
_DIALECTS: Final = {
    AGENT_DATA: _AgentData("ActionFailure"),
    "actions": _AgentData("ActionFailure"),
    "jsonrpc": _JsonRpc("Refusal"),
    "memory-server": Dialect(numbers={errors.NotFound: -32001}),
    RECALL_KIT: _RecallKit("RecallKitFailure"),
    "research-agent": Dialect(
        numbers={errors.Unavailable: -32000, errors.OutOfTime: -32000, errors.Internal: -32000},
        categories={"CONFIGURATION": -32001, "COLLECTION": -32002, "DOCUMENT": -32003, "QUERY": -32004},
    ),
    "tool-server": Dialect(numbers={errors.NotFound: -32001, errors.ToolFailed: -32002}),
}


def dialect_of(name: str) -> Dialect:
    """Return the dialect of a server, or of an endpoint by the first part of its path."""
    return _DIALECTS.get(name, DIALECT)
