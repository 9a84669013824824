"""Messages that rules match, brought to the functions that the template names."""

from __future__ import annotations

import json
import queue
import threading
import time
from typing import TYPE_CHECKING, Final

from infra.local.rules.language import Incoming, Rule, read
from shared.rpc.invoke import FunctionCrashed
from shared.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from infra.local.broker.messages import Message
    from infra.local.functions import Functions
    from infra.local.iot import Listening
    from infra.local.template import RuleTrigger

_WAITING: Final = 10_000
_THREADS: Final = 4
_ATTEMPTS: Final = 3
_RETRY_SECONDS: Final = 1.0


class RuleFeeder:
    """Invokes functions as IoT Core does: without waiting for them, in no order, again where they crash."""

    def __init__(self, triggers: Sequence[RuleTrigger], broker: Listening, functions: Functions) -> None:
        self.dropped = 0
        self._functions = functions
        self._waiting: queue.Queue[tuple[Rule, str, Incoming]] = queue.Queue(_WAITING)
        self._stopping = threading.Event()
        self._threads = [threading.Thread(target=self._run, name="rules", daemon=True) for _ in range(_THREADS)]
        self._unlisten: list[Callable[[], None]] = []
        for thread in self._threads:
            thread.start()
        for trigger in triggers:
            rule = read(trigger.sql)
            self._unlisten.append(broker.listen(rule.topic_filter, self._taker(rule, trigger.function)))

    def close(self) -> None:
        """Bring nothing more."""
        for unlisten in self._unlisten:
            unlisten()
        self._stopping.set()
        for thread in self._threads:
            thread.join(5)

    def _taker(self, rule: Rule, function: str) -> Callable[[Message], None]:
        def take(message: Message) -> None:
            incoming = Incoming(message.topic, message.payload, message.sender, int(time.time() * 1000))
            try:
                self._waiting.put_nowait((rule, function, incoming))
            except queue.Full:
                self.dropped += 1

        return take

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                waiting = self._waiting.get(timeout=0.25)
            except queue.Empty:
                continue
            self._bring(*waiting)

    def _bring(self, rule: Rule, function: str, incoming: Incoming) -> None:
        event = rule.event(incoming)
        if event is None:
            return
        payload = json.dumps(event).encode("utf-8")
        for _ in range(_ATTEMPTS):
            try:
                self._functions(function, payload)
            except (FunctionCrashed, TimeoutError):
                self._stopping.wait(_RETRY_SECONDS)
            else:
                return
        logger.error("rule failed", extra={"function": function, "topic": incoming.topic})
