"""The broker of this process: its loop in a thread of its own, and what other threads may ask of it."""

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
    """A part of this process that is called, in the broker's thread, with each message that a filter matches."""

    take: Callable[[BrokerMessage], None]

    def receive(self, message: BrokerMessage, request: SubscriptionRequest) -> None:  # noqa: ARG002 - a subscriber's
        """Take a message."""
        self.take(message)


class LocalBroker:
    """A running broker; its methods may be called from any thread but its own."""

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
        self._ask(self._listen())

    def close(self) -> None:
        """End all connections and the thread."""
        self._ask(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def run(self, service: Callable[[Broker], Coroutine[None, None, Result]]) -> Future[Result]:
        """Start something that lives with the broker, in its loop."""
        return asyncio.run_coroutine_threadsafe(service(self._broker), self._loop)

    def publish(self, message: BrokerMessage) -> None:
        """Publish in nobody's name."""
        self._do(lambda: self._broker.publish(message))

    def send_direct_message(
        self,
        client_id: str,
        topic: str,
        payload: bytes,
        *,
        confirm_seconds: float | None = None,
        properties: Properties | None = None,
    ) -> None:
        """Send one client a message; with `confirm_seconds` return once it has acknowledged it, or raise."""
        message = BrokerMessage(topic, payload, properties=properties, sender=SYSTEM)
        if confirm_seconds is None:
            self._do(lambda: self._broker.send_direct(client_id, message))
        else:
            self._ask(self._broker.confirm_direct(client_id, message, confirm_seconds))

    def connection(self, client_id: str) -> PresenceRecord | None:
        """What is known of a client's connection, for a while after it has ended."""
        return self._do(lambda: self._broker.visit(client_id))

    def end_connection(self, client_id: str, *, clean_session: bool = False, prevent_will: bool = False) -> None:
        """Disconnect a client, as DeleteConnection does."""
        self._do(lambda: self._broker.end_connection(client_id, clean_session=clean_session, prevent_will=prevent_will))

    def listen(self, topic_filter: str, take: Callable[[BrokerMessage], None]) -> Callable[[], None]:
        """Call `take`, in the broker's thread, with each message that the filter matches, until what is returned is."""
        listener = Listener(take)
        self._do(lambda: self._broker.listen(listener, SubscriptionRequest(topic_filter)))
        return lambda: self._do(lambda: self._broker.unlisten(listener, topic_filter))

    @property
    def broker(self) -> Broker:
        """The broker itself, to be read from any thread and used in its own."""
        return self._broker

    def _do(self, action: Callable[[], Result]) -> Result:
        """Do something in the broker's thread, and hand back what came of it."""
        done: Future[Result] = Future()

        def act() -> None:
            try:
                done.set_result(action())
            except BaseException as error:
                done.set_exception(error)

        self._loop.call_soon_threadsafe(act)
        return done.result()

    def _ask(self, question: Coroutine[None, None, Result]) -> Result:
        return asyncio.run_coroutine_threadsafe(question, self._loop).result()

    async def _listen(self) -> None:
        self._server = await self._loop.create_server(self._broker.accept, sock=self._socket, backlog=1024)

    async def _end(self) -> None:
        assert self._server
        self._server.close()
        self._broker.close()
        await asyncio.sleep(0)
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
