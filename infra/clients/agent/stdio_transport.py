"""The STDIO transport, with error responses to lines that are not messages: the SDK does not respond to them."""

from __future__ import annotations

import os
import sys
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import anyio
from fastmcp import FastMCP
from fastmcp.server.context import set_transport
from mcp.server.context import ServerMiddleware
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError
from pydantic import ValidationError

from api.mcp_errors import error_record, protocol_error, with_data
from api.mcp_messages import refusal, require_one_message
from api.mcp_server import list_revisions
from shared.rpc.errors import InvalidParams, InvalidRequest, KhoError, ParseError
from shared.rpc.method import field_problems
from shared.rpc.strict_json import parse, require_text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from anyio.streams.memory import MemoryObjectSendStream
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
    from mcp.shared._stream_protocols import WriteStream
    from mcp_types import JSONRPCMessage
    from pydantic import BaseModel

    Context = ServerRequestContext[Any, Any]
    RequestHandler = Callable[[Context, Any], Awaitable[HandlerResult]]


class StdioServer(FastMCP):
    """An MCP server that responds to every request on the standard input."""

    def __init__(self, name: str, instructions: str, **settings: Any) -> None:
        super().__init__(name, instructions, **settings)
        self._mcp_server.middleware.insert(0, _ErrorData())
        list_revisions(self._mcp_server, instructions)

    @property
    def _state_store(self) -> Any:
        # FastMCP's own imports key_value and beartype at the first list, which takes half a second.
        return _NO_STATE

    def answer(self, method: str, params: type[BaseModel], handler: RequestHandler) -> None:
        """Answer a method by `handler`, and not by FastMCP, which has no other way to this."""
        self._mcp_server.add_request_handler(method, params, handler)

    async def serve(self) -> None:
        """Serve until the standard input is closed."""
        set_transport("stdio")
        async with (
            self._lifespan_manager(),
            stdio_server(anyio.wrap_file(StringIO())) as (_, responses),  # it drops lines that are no messages
            anyio.create_task_group() as tasks,
        ):
            messages, received = anyio.create_memory_object_stream[SessionMessage | Exception]()
            tasks.start_soon(_forward, _standard_input(), messages, responses)
            options = self._mcp_server.create_initialization_options()
            await self._mcp_server.run(received, responses, options)
            tasks.cancel_scope.cancel()


class _NoState:
    """The state of a session, which keeps none."""

    async def get(self, key: str) -> None:
        """Return nothing."""


_NO_STATE: Final = _NoState()


class _ErrorData(ServerMiddleware[Any]):
    """Gives the SDK's own errors the data that all errors have."""

    async def __call__(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        try:
            return await call_next(ctx)
        except ValidationError as invalid:
            raise protocol_error(InvalidParams(*field_problems(invalid)), "", ctx.protocol_version) from None
        except KhoError as error:
            raise protocol_error(error, "", ctx.protocol_version) from None
        except MCPError as error:
            raise MCPError(**with_data(error.error.model_dump(exclude_none=True))) from None


async def _forward(
    lines: anyio.AsyncFile[bytes],
    messages: MemoryObjectSendStream[SessionMessage | Exception],
    responses: WriteStream[SessionMessage],
) -> None:
    async with messages:
        async for line in lines:
            if not line.strip():
                continue
            message = _message_or_error(line)
            if isinstance(message, JSONRPCError):
                await responses.send(SessionMessage(message))
            elif message:
                await messages.send(SessionMessage(message))


def _message_or_error(line: bytes) -> JSONRPCMessage | None:
    """Return the message of a line, or the response to one that is not a message: none for a notification."""
    request: Any = None
    try:
        request = parse(line)
        require_text(request, line)
        return require_one_message(request)
    except InvalidParams as error:
        if isinstance(request, dict) and "id" not in request:
            return None
        return _error(error, request)
    except (ParseError, InvalidRequest) as error:
        return _error(error, request)


def _error(error: KhoError, request: Any) -> JSONRPCError:
    # A response to a response could, by its id, end a request of the client.
    known = request if isinstance(request, dict) and not request.keys() & {"result", "error"} else None
    return JSONRPCError.model_validate(refusal(known, error_record(error)))


def _standard_input() -> anyio.AsyncFile[bytes]:
    """Return the standard input, and give this process's children an empty one."""
    own = os.fdopen(os.dup(sys.stdin.fileno()), "rb", closefd=False)
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), sys.stdin.fileno())
    return anyio.wrap_file(own)
