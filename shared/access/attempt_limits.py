"""Limits of failed attempts, such as claims by a wrong code: a number in any minute, and one in any hour.

The times of the latest failures are one item. An attempt counts as failed until it succeeds, so attempts at the same
time cannot exceed a limit.
"""

from __future__ import annotations

import math
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from shared.access.keys import attempts as attempts_key
from shared.aws.dynamodb import ConditionFailed, Table, Write, optimistic_retry
from shared.platform.clock import lasts
from shared.platform.config import config
from shared.platform.token_bucket import MICROSECONDS
from shared.rpc.errors import NotFound, TooManyRequests, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from shared.access.models import Clock

_MINUTE: Final = 60
_HOUR: Final = 3600


@dataclass(frozen=True, slots=True)
class AttemptLimit:
    """The failures that a tenant may have with one kind of attempt."""

    table: Table
    kind: str
    a_minute: int
    an_hour: int
    clock: Clock = time.time

    @contextmanager
    def attempt(self, tenant_id: str) -> Iterator[None]:
        """Run an attempt, which fails with NotFound. Raise TooManyRequests if too many have failed."""
        at = round(self.clock() * MICROSECONDS)
        self._change(tenant_id, lambda times: self._with(times, at))
        try:
            yield
        except NotFound:
            raise
        except BaseException:
            self._forget(tenant_id, at)
            raise
        self._forget(tenant_id, at)

    def _with(self, times: list[int], at: int) -> list[int]:
        """Return the failures of the last hour and the one at `at`."""
        for limit, seconds, period in ((self.a_minute, _MINUTE, "minute"), (self.an_hour, _HOUR, "hour")):
            within = _within(times, seconds, at)
            if len(within) >= limit:
                pause = (within[-limit] - at) / MICROSECONDS + seconds
                raise TooManyRequests(
                    f"Too many {self.kind}: at most {limit} in one {period}.",
                    retry_after_seconds=math.ceil(pause),
                )
        return sorted([*_within(times, _HOUR, at), at])

    def _forget(self, tenant_id: str, at: int) -> None:
        """Remove an attempt that did not fail."""

        def without(times: list[int]) -> list[int]:
            place = times.index(at)
            return times[:place] + times[place + 1 :]

        self._change(tenant_id, lambda times: without(times) if at in times else times)

    def _change(self, tenant_id: str, change: Callable[[list[int]], list[int]]) -> None:
        pk, sk = attempts_key(f"{self.kind}#{tenant_id}")
        stored: list[int] = []

        def write() -> None:
            nonlocal stored
            times = change(stored)
            values = {":times": times, ":stored": stored, ":expiry": int(self.clock()) + _HOUR}
            condition = "failures = :stored" if stored else "attribute_not_exists(failures) OR failures = :stored"
            try:
                self.table.write(
                    Write(
                        "Update",
                        {"pk": pk, "sk": sk},
                        expression="SET failures = :times, expires_at = :expiry",
                        condition=condition,
                        values=values,
                        returns_refusing_item=True,
                    )
                )
            except ConditionFailed as failed:
                stored = [int(each) for each in failed.item.get("failures", [])]
                raise

        optimistic_retry(write, attempts=20, exhausted=Unavailable("Too many concurrent attempts."))


def _within(times: list[int], seconds: int, at: int) -> list[int]:
    """Return the times in the `seconds` before `at`."""
    return [each for each in times if lasts(each / MICROSECONDS + seconds, at / MICROSECONDS, seconds)]


def wrong_claims() -> AttemptLimit:
    """Return the limit of claims by a wrong code."""
    settings = config()
    table = Table(settings.limits_table)
    return AttemptLimit(table, "wrong codes", settings.wrong_claims_a_minute, settings.wrong_claims_an_hour)
