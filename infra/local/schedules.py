"""EventBridge's schedules on one machine."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING

from shared.platform.telemetry import logger
from shared.rpc.invocation import FunctionCrashed

if TYPE_CHECKING:
    from infra.local.functions import Functions
    from infra.local.template import ScheduleTrigger


class ScheduledInvocations(threading.Thread):
    """A thread that invokes a function at each interval."""

    def __init__(self, trigger: ScheduleTrigger, functions: Functions) -> None:
        super().__init__(name=f"schedule-{trigger.function}", daemon=True)
        self._trigger = trigger
        self._functions = functions
        self._stopping = threading.Event()

    def stop(self) -> None:
        """Stop before the next invocation."""
        self._stopping.set()

    def run(self) -> None:
        """Invoke the function until stopped. The first time is at once: the server may have been off for long."""
        payload = json.dumps({"source": "aws.events", "detail-type": "Scheduled Event"}).encode()
        while not self._stopping.is_set():
            try:
                self._functions(self._trigger.function, payload)
            except (FunctionCrashed, TimeoutError) as error:
                logger.warning("schedule", extra={"function": self._trigger.function, "failure": type(error).__name__})
            self._stopping.wait(self._trigger.seconds)
