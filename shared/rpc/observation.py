"""The observation of one call: its log record and metrics, its budget of time, and its unexpected exceptions."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from shared.platform.telemetry import Observation, current, logger, record, set_traceparent
from shared.rpc.errors import Internal, KhoError, OutOfTime, Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

REQUEST_SECONDS: Final = 13.0
"""The time in which a request may begin calls to stores: each may take eleven more, and a function ends at 26."""


@contextmanager
def observe(
    method: str, correlation_id: str, *, budget: float | None = None, traceparent: str | None = None
) -> Iterator[Observation]:
    """Log and count one call to `method`, with unexpected exceptions as internal errors.

    The call may begin calls to stores for `budget` seconds, by default REQUEST_SECONDS. `traceparent` is the caller's.
    """
    budget = REQUEST_SECONDS if budget is None else budget
    observation = Observation(method, correlation_id, budget, started=time.perf_counter())
    token = current.set(observation)
    logger.thread_safe_append_keys(correlation_id=correlation_id, method=method)
    set_traceparent(traceparent)
    try:
        with internal_errors(correlation_id):
            yield observation
    except KhoError as error:
        observation.outcome = error.code
        observation.fault = isinstance(error, (Internal, Unavailable, OutOfTime))
        raise
    finally:
        record(observation)
        logger.thread_safe_clear_keys()
        current.reset(token)


@contextmanager
def internal_errors(correlation_id: str) -> Iterator[None]:
    """Convert unexpected exceptions to an internal error and log their traces."""
    try:
        yield
    except KhoError:
        raise
    except Exception:
        logger.exception("crashed")
        raise Internal(correlation_id) from None


@contextmanager
def store_call(operation: str, table: str) -> Iterator[None]:
    """Time one call to a store. Raise OutOfTime if the current call's budget is spent."""
    started = time.perf_counter()
    observation = current.get()
    if observation and started - observation.started > observation.budget:
        raise OutOfTime
    try:
        yield
    finally:
        elapsed = (time.perf_counter() - started) * 1000
        if observation:
            observation.store_calls += 1
            observation.store_ms += elapsed
        logger.debug("store", extra={"operation": operation, "table": table, "duration_ms": round(elapsed, 2)})
