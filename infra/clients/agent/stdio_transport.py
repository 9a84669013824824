"""The STDIO transport, with error responses to lines that are not messages: the SDK does not respond to them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import anyio
from fastmcp import FastMCP
from fastmcp.server.context import set_transport
from mcp.server.context import ServerMiddleware
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from mcp_types import ErrorData, JSONRPCError
from pydantic import ValidationError

from api.mcp_errors import protocol_error, with_data
from api.mcp_server import list_revisions
from infra.clients.agent.backend import BackendError
from shared.rpc.errors import InvalidParams, InvalidRequest, KhoError, ParseError
from shared.rpc.method import field_problems
from shared.rpc.strict_json import is_encodable, require_text

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectSendStream
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
    from mcp.shared._stream_protocols import ReadStream, WriteStream

_NOT_JSON: Final = "json_invalid"


class StdioServer(FastMCP):
    """An MCP server that responds to every request on the standard input."""

    def __init__(self, name: str, instructions: str, **settings: Any) -> None:
        super().__init__(name, instructions, **settings)
        self._mcp_server.middleware.insert(0, _ErrorData())
        list_revisions(self._mcp_server, instructions)

    async def serve(self) -> None:
        """Serve until the standard input is closed."""
        set_transport("stdio")
        async with (
            self._lifespan_manager(),
            stdio_server() as (lines, responses),
            anyio.create_task_group() as tasks,
        ):
            messages, received = anyio.create_memory_object_stream[SessionMessage | Exception]()
            tasks.start_soon(_forward, lines, messages, responses)
            options = self._mcp_server.create_initialization_options()
            await self._mcp_server.run(received, responses, options)
            tasks.cancel_scope.cancel()


class _ErrorData(ServerMiddleware[Any]):
    """Gives the SDK's own errors the data that all errors have."""

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        try:
            return await call_next(ctx)
        except ValidationError as invalid:
            raise protocol_error(InvalidParams(*field_problems(invalid)), "", ctx.protocol_version) from None
        except MCPError as error:
            raise MCPError(**with_data(error.error.model_dump(exclude_none=True))) from None


async def _forward(
    lines: ReadStream[SessionMessage | Exception],
    messages: MemoryObjectSendStream[SessionMessage | Exception],
    responses: WriteStream[SessionMessage],
) -> None:
    async with messages:
        async for each in lines:
            if isinstance(each, SessionMessage):
                await messages.send(each)
            elif isinstance(each, ValidationError) and (response := _error_response(each)):
                await responses.send(SessionMessage(response))


def _error_response(error: ValidationError) -> JSONRPCError | None:
    """Build the response to a line that is not a message. Return None for a blank line and for a notification."""
    problem = error.errors(include_url=False, include_context=False)[0]
    line = problem["input"]
    if problem["type"] != _NOT_JSON:
        return _error(InvalidRequest(), line)
    if not line.strip():
        return None
    try:
        # Python's parser accepts lone surrogates, which pydantic rejects. Such a request has an id to respond to.
        request = json.loads(line)
    except (ValueError, RecursionError):
        return _error(ParseError(), None)
    if not isinstance(request, dict) or "id" not in request:
        return None
    try:
        require_text(request.get("params"))
    except InvalidParams as invalid:
        return _error(invalid, request)
    return _error(InvalidRequest(), request)


def _error(error: KhoError, request: Any) -> JSONRPCError:
    record = BackendError.from_kho_error(error)
    data = ErrorData(code=record.code, message=record.message, data=record.data)
    return JSONRPCError(jsonrpc="2.0", id=_id_of(request), error=data)


def _id_of(request: Any) -> str | int | None:
    """Return the request's id, if it has a valid one."""
    match request:
        case {"method": _, "id": int() as number} if not isinstance(number, bool):
            return number
        case {"method": _, "id": str() as name} if is_encodable(name):
            return name
    return None
