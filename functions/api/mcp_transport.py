"""MCP's Streamable HTTP under Mangum: the gateway's event in, the SDK's answer out, nothing kept between two calls."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from dataclasses import dataclass
from queue import Empty, LifoQueue
from typing import TYPE_CHECKING, Any, cast

from mangum import Mangum
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from api.http_events import MAX_ANSWER_BYTES
from api.mcp_handshake import serve_handshake_message, uses_handshake_revision

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mangum.types import LambdaContext
    from mcp.server.lowlevel.server import Server
    from starlette.types import Receive, Scope, Send

    from shared.rpc.caller import Caller


@dataclass(frozen=True, slots=True)
class McpRequestContext:
    """Who calls in one request, under which correlation id, and which device where the door leads to one."""

    caller: Caller
    correlation_id: str
    device_id: str = ""


class McpTransport:
    """Serves one MCP server, however many calls come at once."""

    def __init__(self, server: Server[Any]) -> None:
        self._server = server
        # Lambda sends one call at a time, and so one seat is made there. One machine makes as many as it needs.
        self._free: LifoQueue[_SessionWorker] = LifoQueue()

    @property
    def capacity(self) -> int:
        """How many calls it can serve at once without making room; as many as there once were."""
        return self._free.qsize()

    def answer(self, event: dict[str, Any], message: dict[str, Any], visit: McpRequestContext) -> dict[str, Any]:
        """What the SDK answers to the gateway's event, whose body is `message`."""
        try:
            seat = self._free.get_nowait()
        except Empty:
            seat = _SessionWorker(self._server)
        try:
            return seat.answer(event, message, visit)
        finally:
            self._free.put(seat)

    def close(self) -> None:
        """End what is not under way."""
        while not self._free.empty():
            self._free.get_nowait().close()


class _SessionWorker:
    """An event loop of its own with the SDK's session manager in it, for one call at a time.

    The manager must be entered once and left running: entered anew for each event it refuses the second, and what one
    task has entered no other may leave. So a task of its own holds it, and sleeps while the loop does.
    """

    def __init__(self, server: Server[Any]) -> None:
        self._loop = asyncio.new_event_loop()
        # The SDK's own limit is lower than the door's.
        self._manager = StreamableHTTPSessionManager(server, stateless=True, max_request_body_size=MAX_ANSWER_BYTES)
        self._server = server
        self._message: dict[str, Any] = {}
        self._visit: McpRequestContext | None = None
        self._over = asyncio.Event()
        running = asyncio.Event()
        self._kept = self._loop.create_task(self._keep(running))
        self._loop.run_until_complete(running.wait())
        with self._current():
            self._mangum = Mangum(self._serve, lifespan="off")

    def answer(self, event: dict[str, Any], message: dict[str, Any], visit: McpRequestContext) -> dict[str, Any]:
        self._message, self._visit = message, visit
        with self._current():
            return self._mangum(event, cast("LambdaContext", None))

    def close(self) -> None:
        self._over.set()
        with self._current():
            self._loop.run_until_complete(self._kept)
            left = asyncio.all_tasks(self._loop)
            for task in left:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        self._loop.close()

    @contextmanager
    def _current(self) -> Iterator[None]:
        # Mangum asks for the thread's own loop.
        asyncio.set_event_loop(self._loop)
        try:
            yield
        finally:
            asyncio.set_event_loop(None)

    async def _keep(self, running: asyncio.Event) -> None:
        async with self._manager.run():
            running.set()
            await self._over.wait()

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["state"] = {"visit": self._visit}
        if uses_handshake_revision(scope):
            await serve_handshake_message(self._server, scope, self._message, send)
        else:
            await self._manager.handle_request(scope, receive, send)
