"""Invocation of functions by endpoints, which never call their code directly."""

from __future__ import annotations

import json
import logging
import random
import time
from collections.abc import Callable
from functools import cache, partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NotRequired, TypedDict

from shared.background import submit
from shared.config import config
from shared.rpc.errors import Internal, KhoError, OutOfTime, TooLarge, TooManyRequests, Unavailable
from shared.rpc.strict_json import compact, require_text

if TYPE_CHECKING:
    from shared.rpc.caller import Caller

MAX_EVENT_BYTES: Final = 6 * 1024 * 1024
"""Lambda's limit of a request and of a response."""
TIME_LIMIT: Final = 26.0
"""Seconds that an endpoint waits for a function: every request ends by 28."""
_CONNECT_SECONDS: Final = 2.0
_MAX_IDLE_SECONDS: Final = 4.0
"""A connection that was frozen with its function may be dead, and a call on it cannot be retried."""
_THROTTLED_ATTEMPTS: Final = 3
_FIRST_PAUSE_SECONDS: Final = 0.5
_MAX_PAUSE_SECONDS: Final = 5.0


class FunctionCall(TypedDict):
    """The request of an endpoint to a method's function."""

    method: str
    params: Any
    caller: dict[str, Any]
    correlation_id: str
    to_read: NotRequired[bool]


class FunctionAnswer(TypedDict):
    """The answer of a method's function: a result or an error, and text for a model if it was requested."""

    result: NotRequired[Any]
    text: NotRequired[str]
    error: NotRequired[dict[str, Any]]


class FunctionCrashed(Exception):
    """The function ended without an answer of its own."""


FunctionTransport = Callable[[str, bytes], bytes]
"""Sends a call's JSON to the function of a name, and returns the answer's JSON.

It raises TimeoutError after TIME_LIMIT, FunctionCrashed if the function made no answer.
"""
_transport: list[FunctionTransport] = []


def use_transport(transport: FunctionTransport) -> None:
    """Send calls through `transport` instead of Lambda, as `kho serve` does."""
    _transport[:] = [transport]


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
    """Send a call to the function. Return its answer unparsed."""
    try:
        payload = compact(call).encode("utf-8")
    except UnicodeEncodeError:
        require_text(call["params"])
        raise
    if len(payload) > MAX_EVENT_BYTES:
        raise TooLarge("The parameters exceed 6 MB.")
    transport = _transport[0] if _transport else _lambda()
    try:
        return transport(function, payload)
    except TimeoutError:
        raise OutOfTime from None
    except FunctionCrashed:
        raise Internal(call["correlation_id"]) from None


def call_internal(function: str, event: Any, *, throttled_seconds: float = 0.0) -> Any:
    """Send an event to a function (`name` or `name:alias`) that has no route.

    Return its response, or raise `Unavailable`, of which a crash of the function is the cause. A call that is throttled
    is repeated for `throttled_seconds`.
    """
    transport = _transport[0] if _transport else _lambda()
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
    if _transport:
        submit(partial(_run_in_background, _transport[0], function, payload))
        return
    _lambda(asynchronous=True)(function, payload)


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


@cache
def _lambda(*, asynchronous: bool = False) -> FunctionTransport:
    from shared.aws.signed_client import SignedServiceClient
    from shared.http_client import ConnectionFailed, ResponseTimeout

    # A call that was sent may have taken effect: it is never retried. Lambda runs nothing of a call that it throttles.
    service = SignedServiceClient(
        "lambda", connect_seconds=_CONNECT_SECONDS, read_seconds=TIME_LIMIT, max_idle_seconds=_MAX_IDLE_SECONDS
    )
    prefix = config().function_prefix
    kind = {"x-amz-invocation-type": "Event"} if asynchronous else {}

    def transport(function: str, payload: bytes) -> bytes:
        name, _, alias = function.partition(":")
        path = f"/2015-03-31/functions/{prefix}-{name}/invocations"
        query = f"Qualifier={alias}" if alias else ""
        try:
            for attempt in range(1, _THROTTLED_ATTEMPTS + 1):
                status, headers, body = service.request("POST", path, payload, kind, query)
                if status != HTTPStatus.TOO_MANY_REQUESTS or attempt == _THROTTLED_ATTEMPTS:
                    break
                time.sleep(random.uniform(0, 0.1 * 2**attempt))  # noqa: S311 - jitter, no secret
        except ResponseTimeout:
            raise TimeoutError from None
        except ConnectionFailed as error:
            _warn(function, str(error))
            raise Unavailable from None
        if status == HTTPStatus.TOO_MANY_REQUESTS:
            raise TooManyRequests
        if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
            raise TooLarge("The parameters exceed 6 MB.")
        if status >= HTTPStatus.BAD_REQUEST:
            _warn(function, f"{status} {headers.get('x-amzn-errortype', '')}")
            raise Unavailable
        if "x-amz-function-error" in headers:
            raise FunctionCrashed
        return body

    return transport


def _warn(function: str, failure: str) -> None:
    logging.getLogger("kho").warning("function", extra={"called": function, "failure": failure})
