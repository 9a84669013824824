"""MCP's Streamable HTTP transport under Mangum, stateless: the gateway's event in, the SDK's answer out."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from queue import Empty, LifoQueue
from typing import Any, cast

from mangum import Mangum
from starlette.types import Receive, Scope, Send

from api.http_events import MAX_ANSWER_BYTES
from api.mcp_handshake import serve_handshake_message, uses_handshake_revision
from api.mcp_sdk import Server, StreamableHTTPSessionManager
from shared.rpc.caller import Caller
from shared.rpc.catalogue import MethodEntry
from shared.rpc.errors import KhoError
from shared.rpc.invocation import FunctionAnswer, call_function


@dataclass(frozen=True, slots=True)
class McpRequestContext:
    """The caller and correlation id of one request, and the device if the endpoint serves one."""

    caller: Caller
    correlation_id: str
    device_id: str = ""
    refusal: KhoError | None = None
    """The error that every invocation of this request raises, if set."""

    def invoke(self, entry: MethodEntry, params: dict[str, Any], *, to_read: bool = False) -> FunctionAnswer:
        """Call a method for this request. Return its answer, with text for a model if `to_read`, or raise its error."""
        if self.refusal:
            raise self.refusal
        return call_function(entry.function, entry.name, params, self.caller, self.correlation_id, to_read=to_read)


class McpTransport:
    """The transport of one MCP server, for any number of concurrent calls."""

    def __init__(self, server: Server[Any]) -> None:
        self._server = server
        # Lambda sends one call at a time, so one worker is made there. `kho serve` makes as many as it needs.
        self._idle: LifoQueue[_SessionWorker] = LifoQueue()

    @property
    def capacity(self) -> int:
        """Return the number of idle workers."""
        return self._idle.qsize()

    def answer(self, event: dict[str, Any], message: dict[str, Any], context: McpRequestContext) -> dict[str, Any]:
        """Return the SDK's answer to the gateway's event, whose body is `message`."""
        try:
            worker = self._idle.get_nowait()
        except Empty:
            worker = _SessionWorker(self._server)
        try:
            return worker.answer(event, message, context)
        finally:
            self._idle.put(worker)

    def close(self) -> None:
        """Close the idle workers."""
        while not self._idle.empty():
            self._idle.get_nowait().close()


class _SessionWorker:
    """An event loop with the SDK's session manager, for one call at a time.

    The manager can be entered only once, and must be left by the task that entered it. A task of its own therefore
    holds it open between calls.
    """

    def __init__(self, server: Server[Any]) -> None:
        self._loop = asyncio.new_event_loop()
        # The SDK's default limit is lower than the endpoint's.
        self._manager = StreamableHTTPSessionManager(server, stateless=True, max_request_body_size=MAX_ANSWER_BYTES)
        self._server = server
        self._message: dict[str, Any] = {}
        self._context: McpRequestContext | None = None
        self._closing = asyncio.Event()
        running = asyncio.Event()
        self._manager_task = self._loop.create_task(self._hold_manager(running))
        self._loop.run_until_complete(running.wait())
        with self._current_loop():
            self._mangum = Mangum(self._serve, lifespan="off")

    def answer(self, event: dict[str, Any], message: dict[str, Any], context: McpRequestContext) -> dict[str, Any]:
        self._message, self._context = message, context
        with self._current_loop():
            return self._mangum(event, cast("Any", None))

    def close(self) -> None:
        self._closing.set()
        with self._current_loop():
            self._loop.run_until_complete(self._manager_task)
            tasks = asyncio.all_tasks(self._loop)
            for task in tasks:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self._loop.close()

    @contextmanager
    def _current_loop(self) -> Iterator[None]:
        # Mangum uses the thread's current event loop.
        asyncio.set_event_loop(self._loop)
        try:
            yield
        finally:
            asyncio.set_event_loop(None)

    async def _hold_manager(self, running: asyncio.Event) -> None:
        async with self._manager.run():
            running.set()
            await self._closing.wait()

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["state"] = {"request_context": self._context}
        if uses_handshake_revision(scope):
            await serve_handshake_message(self._server, scope, self._message, send)
        else:
            await self._manager.handle_request(scope, receive, send)
