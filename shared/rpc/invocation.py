"""Invocation of functions by endpoints, which never call their code directly."""

from __future__ import annotations

import json
import random
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NotRequired, TypedDict

from shared.platform.runtime import runtime
from shared.platform.telemetry import current_traceparent, logger
from shared.rpc.errors import Internal, KhoError, OutOfTime, TooLarge, TooManyRequests, Unavailable
from shared.rpc.strict_json import compact, require_text

if TYPE_CHECKING:
    from shared.platform.runtime import FunctionClient, FunctionTransport
    from shared.rpc.caller import Caller

MAX_EVENT_BYTES: Final = 6 * 1024 * 1024
"""Lambda's limit of a request and of a response."""
TIME_LIMIT: Final = 26.0
"""Seconds that an endpoint waits for a function: every request ends by 28."""
_FIRST_PAUSE_SECONDS: Final = 0.5
_MAX_PAUSE_SECONDS: Final = 5.0


class FunctionCall(TypedDict):
    """The request of an endpoint to a method's function."""

    method: str
    params: Any
    caller: dict[str, Any]
    correlation_id: str
    to_read: NotRequired[bool]
    traceparent: NotRequired[str]


class FunctionAnswer(TypedDict):
    """The answer of a method's function: a result or an error, and text for a model if it was requested."""

    result: NotRequired[Any]
    text: NotRequired[str]
    error: NotRequired[dict[str, Any]]


class FunctionCrashed(Exception):
    """The function ended without an answer of its own."""


def invoke(function: str, method: str, params: Any, caller: Caller, correlation_id: str) -> Any:
    """Call `method` in `function`. Return its result or raise its error."""
    return call_function(function, method, params, caller, correlation_id)["result"]


def call_function(  # noqa: PLR0913 - each is a part of the call
    function: str, method: str, params: Any, caller: Caller, correlation_id: str, *, to_read: bool = False
) -> FunctionAnswer:
    """Call `method` like `invoke`. Return the whole answer; with `to_read`, it may have text for a model."""
    call = FunctionCall(method=method, params=params, caller=caller.record(), correlation_id=correlation_id)
    if to_read:
        call["to_read"] = True
    return unwrap(send(call, function))


def send(call: FunctionCall, function: str) -> bytes:
    """Send a call to the function, with the trace context of the current one. Return its answer unparsed."""
    if traceparent := current_traceparent():
        call = {**call, "traceparent": traceparent}
    try:
        payload = compact(call).encode("utf-8")
    except UnicodeEncodeError:
        require_text(call["params"])
        raise
    if len(payload) > MAX_EVENT_BYTES:
        raise TooLarge("The parameters exceed 6 MB.")
    try:
        return _transport()(function, payload)
    except TimeoutError:
        raise OutOfTime from None
    except FunctionCrashed:
        raise Internal(call["correlation_id"]) from None


def call_internal(function: str, event: Any, *, throttled_seconds: float = 0.0) -> Any:
    """Send an event to a function (`name` or `name:alias`) that has no route.

    Return its response, or raise `Unavailable`, of which a crash of the function is the cause. A call that is throttled
    is repeated for `throttled_seconds`.
    """
    transport = _transport()
    payload = json.dumps(event).encode()
    deadline, pause = time.monotonic() + throttled_seconds, _FIRST_PAUSE_SECONDS
    while True:
        try:
            return json.loads(transport(function, payload))
        except FunctionCrashed as error:
            _warn(function, type(error).__name__)
            raise Unavailable from error
        except TimeoutError as error:
            _warn(function, type(error).__name__)
            raise Unavailable from None
        except TooManyRequests as error:
            if time.monotonic() + pause > deadline:
                _warn(function, type(error).__name__)
                raise Unavailable from None
        time.sleep(random.uniform(0, pause))  # noqa: S311 - jitter, no secret
        pause = min(2 * pause, _MAX_PAUSE_SECONDS)


def start(function: str, event: Any) -> None:
    """Send an event to a function without waiting for its end. Raise `Unavailable` if it was not taken."""
    payload = json.dumps(event).encode()
    if runtime.functions:
        from shared.platform.background import submit  # Lambda needs no threads for it

        submit(partial(_run_in_background, runtime.functions, function, payload))
    else:
        _lambda_client().start(function, payload)


def _transport() -> FunctionTransport:
    return runtime.functions or _lambda_client().invoke


def _lambda_client() -> FunctionClient:
    assert runtime.lambda_client, "functions/api sets it"
    return runtime.lambda_client()


def _run_in_background(transport: FunctionTransport, function: str, payload: bytes) -> None:
    try:
        transport(function, payload)
    except (TimeoutError, FunctionCrashed, RuntimeError) as error:  # a server that ends takes no more work
        _warn(function, type(error).__name__)


def unwrap(raw: bytes) -> FunctionAnswer:
    """Parse a function's answer. Raise its error if it has one."""
    answer: FunctionAnswer = json.loads(raw)
    if "error" in answer:
        raise KhoError.from_record(answer["error"])
    return answer


def _warn(function: str, failure: str) -> None:
    logger.warning("function", extra={"called": function, "failure": failure})
