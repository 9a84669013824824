"""Lambda functions in this process. Events and responses are serialised to JSON, as they are for Lambda."""

from __future__ import annotations

import importlib
import json
import math
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context, ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from shared.platform.config import function_variables
from shared.platform.telemetry import logger
from shared.rpc.invocation import FunctionCrashed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from concurrent.futures import Future

    from infra.local.template import FunctionDefinition

_SWITCH_INTERVAL_SECONDS: Final = 0.0005
_SAME_SECONDS: Final = 2.0
"""An endpoint may take this much longer than the method that it calls."""
_caller_timeout: Final[ContextVar[float]] = ContextVar("caller_timeout", default=math.inf)


@dataclass(frozen=True, slots=True)
class LambdaContext:
    """The Lambda context object of an invocation."""

    function_name: str
    memory_limit_in_mb: int = 512
    invoked_function_arn: str = "arn:aws:lambda:local:000000000000:function:kho"
    aws_request_id: str = "local"


class Functions:
    """Every function of the template, imported at its first call."""

    def __init__(self, functions: Mapping[str, FunctionDefinition], threads: int = 1100) -> None:
        # Functions share one interpreter with the loops that read HTTP and MQTT. At Python's default of 5 ms, short
        # tasks wait too long for busy threads.
        sys.setswitchinterval(_SWITCH_INTERVAL_SECONDS)
        self._functions = functions
        self._handlers: dict[str, Callable[[Any, Any], Any]] = {}
        self._importing = threading.Lock()
        self._pool = ThreadPoolExecutor(max_workers=threads, thread_name_prefix="function")

    def __call__(self, function: str, payload: bytes) -> bytes:
        """Run a function. Raise TimeoutError when its configured timeout is over.

        A function that calls one whose timeout is hardly shorter runs it in its own thread, and its timeout ends both.
        """
        if _caller_timeout.get() - self.timeout(function) <= _SAME_SECONDS:
            return Context().run(self._run, function, payload)
        return self.submit(function, payload).result(timeout=self.timeout(function))

    def submit(self, function: str, payload: bytes) -> Future[bytes]:
        """Begin to run a function in a thread of its own. Its result is `FunctionCrashed` if it makes none."""
        return self._pool.submit(self._run, function, payload)

    def timeout(self, function: str) -> float:
        """Return the function's configured timeout in seconds."""
        return self._functions[function].timeout

    def run(self, name: str, event: Any) -> Any:
        """Run a function on an event in this thread, without its timeout. Raise `FunctionCrashed` if it fails."""
        handler = self._handlers.get(name) or self._import(name)
        definition = self._functions[name]
        variables = function_variables.set(definition.variables)
        timeout = _caller_timeout.set(definition.timeout)
        try:
            return handler(event, LambdaContext(name))
        except Exception as error:
            logger.exception("function crashed", extra={"function": name})
            raise FunctionCrashed(name) from error
        finally:
            function_variables.reset(variables)
            _caller_timeout.reset(timeout)

    def close(self) -> None:
        """Cancel invocations that have not started."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _run(self, name: str, payload: bytes) -> bytes:
        return json.dumps(self.run(name, json.loads(payload)), ensure_ascii=False).encode("utf-8")

    def _import(self, name: str) -> Callable[[Any, Any], Any]:
        module, _, attribute = self._functions[name].handler.rpartition(".")
        with self._importing:
            handler: Callable[[Any, Any], Any] = getattr(importlib.import_module(module), attribute)
            self._handlers[name] = handler
        return handler
