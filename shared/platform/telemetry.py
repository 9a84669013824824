"""Logs and metrics of calls, cold starts included, under one correlation id from the endpoint to the store."""

from __future__ import annotations

import itertools
import logging
import math
import re
import secrets
import sys
import time
import zlib
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from aws_lambda_powertools import Logger
from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

from shared.platform.runtime import runtime

if TYPE_CHECKING:
    from shared.platform.log_file import LogFile

SERVICES: Final = {"discovery": "endpoints", "oauth": "endpoints"}
"""The services of packages whose calls are no metrics of their own. Each service costs metrics, alarms and graphs."""
_TRACE_PARENT: Final = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?"
)
"""W3C Trace Context. A later version may have more members."""
_TRACE_TIME: Final = 8
_CORRELATION_ID: Final = re.compile(r"[A-Za-z0-9._=:-]{8,128}")


class _LogHandler(logging.Handler):
    """Log handler for the file that the environment names at the time of a record, else for standard output."""

    def __init__(self) -> None:
        super().__init__()
        self._path = ""
        self._file: LogFile | None = None
        self._output = logging.StreamHandler(sys.stdout)

    def handle(self, record: logging.LogRecord) -> bool:
        """Write a record without the lock, for which threads would wait while the one that writes waits for Python."""
        is_taken = bool(self.filter(record))
        if is_taken:
            self.emit(record)
        return is_taken

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record."""
        path = runtime.environment.get("KHO_LOG_FILE", "")
        if path != self._path:
            self._path, self._file, self._output = path, _log_file(path), logging.StreamHandler(sys.stdout)
        if file := self._file:
            file.write(f"{self.format(record)}\n".encode("utf-8", "backslashreplace"))
        else:
            self._output.setFormatter(self.formatter)
            self._output.handle(record)


def _log_file(path: str) -> LogFile | None:
    if not path:
        return None
    from shared.platform.log_file import LogFile  # no deployed function has one

    return LogFile(path)


logger = Logger(service="kho", logger_handler=_LogHandler())


@dataclass(slots=True)
class Observation:
    """The facts about one call that its log record and metrics report."""

    method: str
    correlation_id: str
    budget: float = math.inf
    outcome: str = "OK"
    fault: bool = False
    """True if Kho or a service that it uses failed, not if the caller's request was wrong."""
    store_calls: int = 0
    store_ms: float = 0.0
    traceparent: str = ""
    """The W3C trace context of the caller, if it sent one."""
    counts: dict[str, int] = field(default_factory=dict)
    started: float = field(default_factory=time.perf_counter)


current: Final[ContextVar[Observation | None]] = ContextVar("observation", default=None)
"""The observation of the call that this thread or task works for."""
_calls: Final = itertools.count()


def correlation_id_from(proposed: str | None) -> str:
    """Return the caller's correlation id if it is a plain token, else a new one."""
    if proposed and _CORRELATION_ID.fullmatch(proposed):
        return proposed
    return secrets.token_hex(16)


def set_traceparent(proposed: object) -> None:
    """Take the caller's trace context over into the current call and its log records, if it is valid."""
    observation = current.get()
    match = _TRACE_PARENT.fullmatch(proposed) if isinstance(proposed, str) else None
    if observation and match:
        observation.traceparent = "-".join(("00", *match.groups()))
        logger.thread_safe_append_keys(trace_id=match[1], parent_id=match[2])


def current_traceparent() -> str:
    """Return the trace context of the current call's caller, or ''."""
    observation = current.get()
    return observation.traceparent if observation else ""


def trace_header() -> str:
    """Return the X-Ray header of a request to AWS: of the caller's trace, else of the function's own, or ''."""
    match = _TRACE_PARENT.fullmatch(current_traceparent())
    if match is None:
        return runtime.environment.get("_X_AMZN_TRACE_ID", "")
    trace, parent, flags = match.groups()
    return f"Root=1-{trace[:_TRACE_TIME]}-{trace[_TRACE_TIME:]};Parent={parent};Sampled={int(flags, 16) & 1}"


def current_correlation_id() -> str:
    """Return the correlation id of the current call."""
    observation = current.get()
    return observation.correlation_id if observation else ""


def seconds_left() -> float:
    """Return the seconds in which the current call may still begin calls to stores."""
    observation = current.get()
    return observation.budget - (time.perf_counter() - observation.started) if observation else math.inf


def seconds_so_far() -> float:
    """Return the seconds since the current call began."""
    observation = current.get()
    return time.perf_counter() - observation.started if observation else 0.0


def count(**counts: int) -> None:
    """Add counts to the current call's log record; each that is not zero is also a metric."""
    observation = current.get()
    if observation:
        observation.counts |= counts


def record(observation: Observation) -> None:
    """Log and count a call that has ended. The first one of a process was its cold start."""
    elapsed = (time.perf_counter() - observation.started) * 1000
    cold = next(_calls) == 0
    succeeded = observation.outcome == "OK"
    if not succeeded or _is_sampled(observation.correlation_id):
        logger.info(
            "called",
            extra={
                "outcome": observation.outcome,
                "duration_ms": round(elapsed, 2),
                "store_calls": observation.store_calls,
                "store_ms": round(observation.store_ms, 2),
                "cold_start": cold,
                **observation.counts,
            },
        )
    if runtime.environment.get("POWERTOOLS_METRICS_DISABLED") == "true":
        return
    namespace = runtime.environment.get("POWERTOOLS_METRICS_NAMESPACE", "Kho")
    package = observation.method.partition("/")[0]
    service = SERVICES.get(package, package)
    metrics = EphemeralMetrics(namespace=namespace, service=service)
    if runtime.environment.get("KHO_METHOD_METRICS") == "true":
        metrics.add_dimensions(method=observation.method, service=service)
    metrics.add_metric("Calls", MetricUnit.Count, 1)
    metrics.add_metric("Duration", MetricUnit.Milliseconds, elapsed)
    # A metric costs for each hour with a value: these two are sent only if they are not zero.
    for name, happened in (("Errors", not succeeded), ("Faults", observation.fault)):
        if happened:
            metrics.add_metric(name, MetricUnit.Count, 1)
    for name, value in observation.counts.items():
        if value:
            metrics.add_metric(name.title().replace("_", ""), MetricUnit.Count, value)
    metrics.flush_metrics()


def _is_sampled(correlation_id: str) -> bool:
    """Return True for KHO_LOG_SAMPLING percent of the ids: all functions log the same calls."""
    share = zlib.crc32(correlation_id.encode()) % 100
    return share < int(runtime.environment.get("KHO_LOG_SAMPLING") or 100)
