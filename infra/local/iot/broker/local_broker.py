"""The embedded broker: its event loop in a thread of its own, and its thread-safe interface."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, TypeVar

from infra.local.iot.broker.broker import Broker
from infra.local.iot.broker.connection import BrokerConnection
from infra.local.iot.broker.limits import Limits

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Coroutine
    from concurrent.futures import Future

    from infra.local.iot.broker.authorization import FleetAccessRules
    from infra.local.iot.broker.messages import BrokerMessage

Result = TypeVar("Result")


class LocalBroker:
    """A running broker; call its methods from any thread but its own."""

    def __init__(
        self,
        listener: socket.socket,
        access: FleetAccessRules,
        limits: Limits | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._loop = asyncio.new_event_loop()
        self.broker = Broker(access, limits or Limits(), self._loop, clock)
        """Read it from any thread; use it only in its own."""
        self._socket = listener
        self._server: asyncio.Server | None = None
        self._thread = threading.Thread(target=self._loop.run_forever, name="mqtt", daemon=True)
        self._thread.start()
        self.run(self._listen).result()

    def close(self) -> None:
        """End all connections and the thread."""
        self.run(self._end).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def run(self, service: Callable[[Broker], Coroutine[None, None, Result]]) -> Future[Result]:
        """Run a coroutine in the broker's event loop."""
        return asyncio.run_coroutine_threadsafe(service(self.broker), self._loop)

    def call(self, action: Callable[[Broker], Result]) -> Result:
        """Run an action in the broker's thread and return its result."""

        async def act(broker: Broker) -> Result:
            return action(broker)

        return self.run(act).result()

    def post(self, action: Callable[[BrokerMessage], object], message: BrokerMessage) -> None:
        """Run an action with a message in the broker's thread, soon. Raise RuntimeError after the broker's end."""
        self._loop.call_soon_threadsafe(action, message)

    def listen(self, topic_filter: str, handler: Callable[[BrokerMessage], None]) -> Callable[[], None]:
        """Call `handler` in the broker's thread with each matching message until the returned function is called."""
        self.call(lambda broker: broker.subscribers.add(handler, topic_filter))
        return lambda: self.call(lambda broker: broker.subscribers.remove(handler, topic_filter))

    async def _listen(self, broker: Broker) -> None:
        self._server = await self._loop.create_server(lambda: BrokerConnection(broker), sock=self._socket, backlog=1024)

    async def _end(self, broker: Broker) -> None:
        assert self._server
        self._server.close()
        broker.close()
        await asyncio.sleep(0)
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
