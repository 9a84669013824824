"""The pipes to an editor, and what is answered to lines that are no message: the SDK says nothing to them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import anyio
from fastmcp import FastMCP
from fastmcp.server.context import set_transport
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp_types import ErrorData, JSONRPCError
from pydantic import ValidationError

from infra.agent.backend import BackendError
from shared.rpc.errors import InvalidParams, InvalidRequest, KhoError, ParseError
from shared.rpc.strict_json import is_encodable, require_text

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectSendStream
    from mcp.shared._stream_protocols import ReadStream, WriteStream

_NOT_JSON: Final = "json_invalid"


class StdioServer(FastMCP):
    """An MCP server whose every request over the standard input is answered."""

    async def serve(self) -> None:
        """Serve until the standard input is closed."""
        set_transport("stdio")
        async with (
            self._lifespan_manager(),
            stdio_server() as (lines, answers),
            anyio.create_task_group() as reading,
        ):
            messages, received = anyio.create_memory_object_stream[SessionMessage | Exception]()
            reading.start_soon(_forward, lines, messages, answers)
            options = self._mcp_server.create_initialization_options()
            await self._mcp_server.run(received, answers, options)
            reading.cancel_scope.cancel()


async def _forward(
    lines: ReadStream[SessionMessage | Exception],
    messages: MemoryObjectSendStream[SessionMessage | Exception],
    answers: WriteStream[SessionMessage],
) -> None:
    async with messages:
        async for each in lines:
            if isinstance(each, SessionMessage):
                await messages.send(each)
            elif isinstance(each, ValidationError) and (refusal := _error_response(each)):
                await answers.send(SessionMessage(refusal))


def _error_response(wrong: ValidationError) -> JSONRPCError | None:
    """What is said to a line that is no message; nothing to a blank one, and to a notification."""
    problem = wrong.errors(include_url=False, include_context=False)[0]
    said = problem["input"]
    if problem["type"] != _NOT_JSON:
        return _error(InvalidRequest(), said)
    if not said.strip():
        return None
    try:
        # Python's own reader takes halves of characters: with them it is a request like any other, but for its text.
        request = json.loads(said)
    except (ValueError, RecursionError):
        return _error(ParseError(), None)
    if not isinstance(request, dict) or "id" not in request:
        return None
    try:
        require_text(request.get("params"))
    except InvalidParams as refusal:
        return _error(refusal, request)
    return _error(InvalidRequest(), request)


def _error(error: KhoError, request: Any) -> JSONRPCError:
    refused = BackendError.from_kho_error(error)
    data = ErrorData(code=refused.code, message=refused.message, data=refused.data)
    return JSONRPCError(jsonrpc="2.0", id=_id_of(request), error=data)


def _id_of(request: Any) -> str | int | None:
    """What a request is called, where it can be told."""
    match request:
        case {"method": _, "id": int() as number} if not isinstance(number, bool):
            return number
        case {"method": _, "id": str() as name} if is_encodable(name):
            return name
    return None
