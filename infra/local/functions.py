"""Functions in this process: each event and answer goes through JSON, as it does on the way to Lambda."""

from __future__ import annotations

import importlib
import json
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from shared.rpc.invoke import FunctionCrashed
from shared.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from infra.local.template import FunctionDefinition

_TURN_SECONDS: Final = 0.0005


@dataclass(frozen=True, slots=True)
class LambdaContext:
    """What Lambda tells a handler of its invocation."""

    function_name: str
    memory_limit_in_mb: int = 512
    invoked_function_arn: str = "arn:aws:lambda:local:000000000000:function:kho"
    aws_request_id: str = "local"


class Functions:
    """Every function of the template, imported when it is first called."""

    def __init__(self, functions: Mapping[str, FunctionDefinition], threads: int = 1100) -> None:
        # Functions share one interpreter here, with the loops that read HTTP and MQTT: who has little left to do
        # must not wait 5 ms for who has much.
        sys.setswitchinterval(_TURN_SECONDS)
        self._functions = functions
        self._handlers: dict[str, Callable[[Any, Any], Any]] = {}
        self._importing = threading.Lock()
        self._pool = ThreadPoolExecutor(max_workers=threads, thread_name_prefix="function")

    def __call__(self, function: str, payload: bytes) -> bytes:
        """Run a function to its end, or to the end of its time."""
        running = self._pool.submit(self._run, function, payload)
        return running.result(timeout=self._functions[function].timeout)

    def close(self) -> None:
        """Start nothing more."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _run(self, name: str, payload: bytes) -> bytes:
        handler = self._handlers.get(name) or self._import(name)
        try:
            return json.dumps(handler(json.loads(payload), LambdaContext(name)), ensure_ascii=False).encode("utf-8")
        except Exception as error:
            logger.exception("function crashed", extra={"function": name})
            raise FunctionCrashed(name) from error

    def _import(self, name: str) -> Callable[[Any, Any], Any]:
        module, _, attribute = self._functions[name].handler.rpartition(".")
        with self._importing:
            handler: Callable[[Any, Any], Any] = getattr(importlib.import_module(module), attribute)
            self._handlers[name] = handler
        return handler
