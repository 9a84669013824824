"""Messages that rules match, brought to the functions that the template names."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from infra.local.rules.iot_sql import IncomingMessage, IotRule, parse_rule
from shared.rpc.invoke import FunctionCrashed
from shared.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from infra.local.broker.messages import BrokerMessage
    from infra.local.functions import Functions
    from infra.local.iot_core import MessageSource
    from infra.local.template import RuleTrigger

_WAITING: Final = 10_000
_AT_ONCE: Final = 64
"""A device that does not answer for seconds must not keep what others send from its function."""
_ATTEMPTS: Final = 3
_RETRY_SECONDS: Final = 1.0


class RuleDispatcher:
    """Invokes functions as IoT Core does: without waiting for them, in no order, again where they crash."""

    def __init__(self, triggers: Sequence[RuleTrigger], broker: MessageSource, functions: Functions) -> None:
        self.dropped = 0
        self._functions = functions
        self._room = threading.BoundedSemaphore(_WAITING)
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="rules")
        self._stopping = threading.Event()
        self._unlisten: list[Callable[[], None]] = []
        for trigger in triggers:
            rule = parse_rule(trigger.sql)
            self._unlisten.append(broker.listen(rule.topic_filter, self._taker(rule, trigger.function)))

    def close(self) -> None:
        """Bring nothing more."""
        self._stopping.set()
        for unlisten in self._unlisten:
            unlisten()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _taker(self, rule: IotRule, function: str) -> Callable[[BrokerMessage], None]:
        def take(message: BrokerMessage) -> None:
            incoming = IncomingMessage(message.topic, message.payload, message.sender, int(time.time() * 1000))
            if self._stopping.is_set():
                return
            if self._room.acquire(blocking=False):
                self._pool.submit(self._run, rule, function, incoming)
            else:
                self.dropped += 1

        return take

    def _run(self, rule: IotRule, function: str, incoming: IncomingMessage) -> None:
        try:
            self._bring(rule, function, incoming)
        finally:
            self._room.release()

    def _bring(self, rule: IotRule, function: str, incoming: IncomingMessage) -> None:
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
