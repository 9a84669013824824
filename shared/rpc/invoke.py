"""The seam between doors and functions: doors call functions, never their code."""

from __future__ import annotations

import json
import logging
from functools import cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NotRequired, Protocol, TypedDict

from shared.config import config
from shared.rpc.errors import Internal, KhoError, OutOfTime, TooLarge, TooManyRequests, Unavailable
from shared.rpc.strict_json import compact, require_text

if TYPE_CHECKING:
    from shared.rpc.caller import Caller
    from shared.rpc.errors import ErrorRecord

MAX_EVENT_BYTES: Final = 6 * 1024 * 1024
"""What a function can be sent, and can answer."""
TIME_LIMIT = 26.0
_CONNECT_SECONDS = 2.0
"""Seconds that a door waits for a function: every request ends by 28."""


class FunctionCall(TypedDict):
    """What a door sends to a method's function."""

    method: str
    params: Any
    caller: dict[str, Any]
    correlation_id: str
    to_read: NotRequired[bool]


class FunctionAnswer(TypedDict):
    """What a method's function sends back: a result or an error; where it was asked for, text for a model to read."""

    result: NotRequired[Any]
    text: NotRequired[str]
    error: NotRequired[ErrorRecord]


class FunctionTransport(Protocol):
    """Brings a call's JSON to a function and its answer's JSON back."""

    def __call__(self, function: str, payload: bytes) -> bytes:
        """Raise TimeoutError past TIME_LIMIT, FunctionCrashed if no answer was made."""


class FunctionCrashed(Exception):
    """The function ended without an answer of its own making."""


_transport: list[FunctionTransport] = []


def use_transport(transport: FunctionTransport) -> None:
    """Let calls travel by `transport` instead of Lambda, as one machine does."""
    _transport[:] = [transport]


def invoke(function: str, method: str, params: Any, caller: Caller, correlation_id: str) -> Any:
    """Call the method that lives in `function`; its result, or its error raised."""
    call = FunctionCall(method=method, params=params, caller=caller.record(), correlation_id=correlation_id)
    return unwrap(send(call, function))["result"]


def invoke_with_text(
    function: str, method: str, params: Any, caller: Caller, correlation_id: str
) -> tuple[Any, str | None]:
    """Call the method as `invoke` does; its result, and the same for a model to read where the method says it so."""
    call = FunctionCall(
        method=method, params=params, caller=caller.record(), correlation_id=correlation_id, to_read=True
    )
    answer = unwrap(send(call, function))
    return answer["result"], answer.get("text")


def send(call: FunctionCall, function: str) -> bytes:
    """Bring a call to the function; what it answers, unread."""
    require_text(call["params"])
    payload = compact(call).encode("utf-8")
    if len(payload) > MAX_EVENT_BYTES:
        raise TooLarge("The parameters would pass 6 MB.")
    transport = _transport[0] if _transport else _lambda()
    try:
        return transport(function, payload)
    except TimeoutError:
        raise OutOfTime from None
    except FunctionCrashed:
        raise Internal(call["correlation_id"]) from None


def unwrap(raw: bytes) -> FunctionAnswer:
    """A function's answer, or its error raised."""
    answer: FunctionAnswer = json.loads(raw)
    if "error" in answer:
        raise KhoError.from_record(answer["error"])
    return answer


@cache
def _lambda() -> FunctionTransport:
    from shared.aws.signed_client import ConnectionFailed, ResponseTimeout, SignedServiceClient

    # A call that was sent may have taken effect: it is never sent again.
    service = SignedServiceClient("lambda", connect_seconds=_CONNECT_SECONDS, read_seconds=TIME_LIMIT)
    prefix = config().function_prefix

    def transport(function: str, payload: bytes) -> bytes:
        try:
            status, headers, body = service.post(f"/2015-03-31/functions/{prefix}-{function}/invocations", payload, {})
        except ResponseTimeout:
            raise TimeoutError from None
        except ConnectionFailed as error:
            _warn(function, str(error))
            raise Unavailable from None
        if status == HTTPStatus.TOO_MANY_REQUESTS:
            raise TooManyRequests
        if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
            raise TooLarge("The parameters would pass 6 MB.")
        if status >= HTTPStatus.BAD_REQUEST:
            _warn(function, f"{status} {headers.get('x-amzn-errortype', '')}")
            raise Unavailable
        if "x-amz-function-error" in headers:
            raise FunctionCrashed
        return body

    return transport


def _warn(function: str, failure: str) -> None:
    logging.getLogger("kho").warning("function", extra={"called": function, "failure": failure})
