"""The time budget of an answer, counted from the start of its request."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from shared.telemetry import REQUEST_SECONDS, seconds_so_far

if TYPE_CHECKING:
    from typing import Self

_MAX_SECONDS: Final = REQUEST_SECONDS - 1
_SEARCH_SECONDS: Final = 3.0
"""Minimum for a search, even within a smaller budget: the first search of a process loads the model."""
_RESERVE_SHARE: Final = 0.1
_MIN_RESERVE: Final = 0.05
_MAX_RESERVE: Final = 0.25


@dataclass(frozen=True, slots=True)
class TimeBudget:
    """Deadlines for optional stages and for the search, as values of `time.monotonic`."""

    deadline: float
    search_deadline: float

    @classmethod
    def of(cls, milliseconds: int | None) -> Self:
        """Return the budget of the current request, limited to `milliseconds` if given."""
        seconds = min(_MAX_SECONDS, _MAX_SECONDS if milliseconds is None else milliseconds / 1000)
        started = time.monotonic() - seconds_so_far()
        reserve = min(_MAX_RESERVE, max(_MIN_RESERVE, seconds * _RESERVE_SHARE))
        return cls(started + seconds - reserve, started + max(seconds, _SEARCH_SECONDS))

    @property
    def seconds_left(self) -> float:
        """The seconds left for optional stages."""
        return self.deadline - time.monotonic()

    @property
    def search_seconds_left(self) -> float:
        """The seconds left for the search."""
        return self.search_deadline - time.monotonic()
