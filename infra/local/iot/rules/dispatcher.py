"""Dispatcher of messages that match an IoT rule to the rule's function."""

from __future__ import annotations

import json
import secrets
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from infra.local.iot.rules.iot_sql import IncomingMessage, ParsedRule, parse_rule
from shared.aws import dead_letters
from shared.aws.dead_letters import CRASHED, DeadLetter
from shared.platform.clock import lasts, now_ms
from shared.platform.telemetry import logger
from shared.rpc.errors import Unavailable
from shared.rpc.invocation import FunctionCrashed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from infra.local.functions import Functions
    from infra.local.iot.broker.local_broker import LocalBroker
    from infra.local.iot.broker.messages import BrokerMessage
    from infra.local.iot.external_broker import ExternalBroker
    from infra.local.template import RuleTrigger

_MAX_QUEUED: Final = 10_000
"""The events of one rule that wait. Messages of devices never take the places of connections."""
_WORKERS: Final = 64
"""The number of concurrent invocations; devices that delay their replies for seconds must not block others."""
_ATTEMPTS: Final = 3
_RETRY_SECONDS: Final = 1.0


class RuleDispatcher:
    """Invokes functions as IoT Core does: asynchronously, unordered, and with retries if they crash."""

    def __init__(
        self, triggers: Sequence[RuleTrigger], broker: LocalBroker | ExternalBroker, functions: Functions
    ) -> None:
        self.dropped = 0
        self._functions = functions
        self._pool = ThreadPoolExecutor(_WORKERS, thread_name_prefix="rules")
        self._stopping = threading.Event()
        self._unlisten: list[Callable[[], None]] = []
        for trigger in triggers:
            rule = parse_rule(trigger.sql)
            self._unlisten.append(broker.listen(rule.topic_filter, self._handler(rule, trigger.function)))

    def close(self) -> None:
        """Stop dispatching."""
        self._stopping.set()
        for unlisten in self._unlisten:
            unlisten()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _handler(self, rule: ParsedRule, function: str) -> Callable[[BrokerMessage], None]:
        last_at, sequence = 0, 0
        slots = threading.BoundedSemaphore(_MAX_QUEUED)

        def enqueue(published: BrokerMessage) -> None:
            nonlocal last_at, sequence
            at = now_ms()
            if lasts(last_at / 1000, at / 1000, 0):
                at = last_at  # the clock went back a little: the order of the messages stays
            sequence = sequence + 1 if at == last_at else 0
            last_at = at
            event = rule.event(IncomingMessage(published.topic, published.payload, at, sequence))
            # Most messages of devices are replies, for which no thread has to wake up.
            if event is None or self._stopping.is_set():
                return
            if slots.acquire(blocking=False):
                invocation = self._pool.submit(self._invoke, function, event, published.topic)
                invocation.add_done_callback(lambda _: slots.release())
            else:
                self.dropped += 1
                if self.dropped & (self.dropped - 1) == 0:  # 1, 2, 4, 8 …
                    logger.warning("rule events dropped", extra={"function": function, "events": self.dropped})

        return enqueue

    def _invoke(self, function: str, event: dict[str, Any], topic: str) -> None:
        payload = json.dumps(event).encode("utf-8")
        for _ in range(_ATTEMPTS):
            try:
                self._functions(function, payload)
            except (FunctionCrashed, TimeoutError):
                self._stopping.wait(_RETRY_SECONDS)
            else:
                return
        if self._stopping.is_set():
            return
        # Like Lambda's own message, the letter has neither a table's keys nor the payload.
        method = function.replace("-", "/", 1)
        with suppress(Unavailable):
            dead_letters.send(DeadLetter(secrets.token_hex(16), method, CRASHED, "", topic))
