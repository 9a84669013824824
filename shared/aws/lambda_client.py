"""Lambda's HTTP protocol: invocations of this stack's functions."""

from __future__ import annotations

import random
import time
from functools import cached_property
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from shared.platform.config import config
from shared.platform.telemetry import logger
from shared.rpc.errors import TooLarge, TooManyRequests, Unavailable
from shared.rpc.invocation import TIME_LIMIT, FunctionCrashed

if TYPE_CHECKING:
    from shared.aws.signed_client import SignedServiceClient

_CONNECT_SECONDS: Final = 2.0
_MAX_IDLE_SECONDS: Final = 4.0
"""A connection that was frozen with its function may be dead, and a call on it cannot be retried."""
_THROTTLED_ATTEMPTS: Final = 3


class LambdaClient:
    """Client of Lambda in this process's region."""

    def invoke(self, function: str, payload: bytes) -> bytes:
        """Run a function (`name` or `name:alias`), and return its response. Raise TimeoutError if none came in time."""
        return self._send(function, payload)

    def start(self, function: str, payload: bytes) -> None:
        """Send an event to a function without waiting for its end. Raise `Unavailable` if it was not taken."""
        self._send(function, payload, {"x-amz-invocation-type": "Event"})

    @cached_property
    def _service(self) -> SignedServiceClient:
        from shared.aws.signed_client import SignedServiceClient

        return SignedServiceClient(
            "lambda", connect_seconds=_CONNECT_SECONDS, read_seconds=TIME_LIMIT, max_idle_seconds=_MAX_IDLE_SECONDS
        )

    def _send(self, function: str, payload: bytes, kind: dict[str, str] | None = None) -> bytes:
        from shared.platform.http import ConnectionFailed, ResponseTimeout

        name, _, alias = function.partition(":")
        path = f"/2015-03-31/functions/{config().function_prefix}-{name}/invocations"
        query = f"Qualifier={alias}" if alias else ""
        try:
            # A call that was sent may have taken effect: it is never retried. Lambda runs nothing of a throttled call.
            for attempt in range(1, _THROTTLED_ATTEMPTS + 1):
                status, headers, body = self._service.request("POST", path, payload, kind or {}, query)
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


def _warn(function: str, failure: str) -> None:
    logger.warning("function", extra={"called": function, "failure": failure})
