"""The embedded broker: its event loop in a thread of its own, and its thread-safe interface."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from infra.local.broker.broker import SYSTEM, Broker
from infra.local.broker.limits import Limits
from infra.local.broker.messages import BrokerMessage
from infra.local.mqtt.packets import SubscriptionRequest

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Coroutine

    from infra.local.broker.authorization import AccessRules
    from infra.local.broker.presence import PresenceRecord
    from infra.local.mqtt.properties import Properties

Result = TypeVar("Result")


@dataclass(frozen=True, eq=False, slots=True)
class Listener:
    """A listener of this process, called in the broker's thread with each matching message."""

    handler: Callable[[BrokerMessage], None]

    def receive(self, message: BrokerMessage, request: SubscriptionRequest) -> None:  # noqa: ARG002 - part of the Subscriber protocol
        """Handle a message."""
        self.handler(message)


class LocalBroker:
    """A running broker; call its methods from any thread but its own."""

    def __init__(
        self,
        listener: socket.socket,
        access: AccessRules,
        limits: Limits | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._loop = asyncio.new_event_loop()
        self._broker = Broker(access, limits or Limits(), self._loop, clock)
        self._socket = listener
        self._server: asyncio.Server | None = None
        self._thread = threading.Thread(target=self._loop.run_forever, name="mqtt", daemon=True)
        self._thread.start()
        self._run(self._listen())

    def close(self) -> None:
        """End all connections and the thread."""
        self._run(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def run(self, service: Callable[[Broker], Coroutine[None, None, Result]]) -> Future[Result]:
        """Run a coroutine in the broker's event loop."""
        return asyncio.run_coroutine_threadsafe(service(self._broker), self._loop)

    def publish(self, message: BrokerMessage) -> None:
        """Publish without a sender."""
        self._call(lambda: self._broker.publish(message))

    def send_direct_message(
        self,
        client_id: str,
        topic: str,
        payload: bytes,
        *,
        confirm_seconds: float | None = None,
        properties: Properties | None = None,
    ) -> None:
        """Send one client a message. With `confirm_seconds`, wait for its acknowledgement or raise."""
        message = BrokerMessage(topic, payload, properties=properties, sender=SYSTEM)
        if confirm_seconds is None:
            self._call(lambda: self._broker.send_direct(client_id, message))
        else:
            self._run(self._broker.confirm_direct(client_id, message, confirm_seconds))

    def connection(self, client_id: str) -> PresenceRecord | None:
        """Return the record of a client's connection, which is kept for a while after its end."""
        return self._call(lambda: self._broker.presence_record(client_id))

    def end_connection(self, client_id: str, *, clean_session: bool = False, prevent_will: bool = False) -> None:
        """Disconnect a client, as DeleteConnection does."""
        self._call(
            lambda: self._broker.end_connection(client_id, clean_session=clean_session, prevent_will=prevent_will)
        )

    def listen(self, topic_filter: str, handler: Callable[[BrokerMessage], None]) -> Callable[[], None]:
        """Call `handler` in the broker's thread with each matching message until the returned function is called."""
        listener = Listener(handler)
        self._call(lambda: self._broker.add_listener(listener, SubscriptionRequest(topic_filter)))
        return lambda: self._call(lambda: self._broker.remove_listener(listener, topic_filter))

    @property
    def broker(self) -> Broker:
        """The broker itself: read it from any thread, use it only in its own."""
        return self._broker

    def _call(self, action: Callable[[], Result]) -> Result:
        """Run an action in the broker's thread and return its result."""
        done: Future[Result] = Future()

        def act() -> None:
            try:
                done.set_result(action())
            except BaseException as error:
                done.set_exception(error)

        self._loop.call_soon_threadsafe(act)
        return done.result()

    def _run(self, coroutine: Coroutine[None, None, Result]) -> Result:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    async def _listen(self) -> None:
        self._server = await self._loop.create_server(self._broker.accept, sock=self._socket, backlog=1024)

    async def _end(self) -> None:
        assert self._server
        self._server.close()
        self._broker.close()
        await asyncio.sleep(0)
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
