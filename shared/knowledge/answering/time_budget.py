"""The time that an answer may take, counted from when its request came in."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from shared.telemetry import REQUEST_SECONDS, seconds_so_far

if TYPE_CHECKING:
    from typing import Self

_LONGEST: Final = REQUEST_SECONDS - 1
_SEARCH_SECONDS: Final = 3.0
"""A search is given so long even within a smaller budget: a process's first one loads what it needs."""
_SHARE_FOR_THE_END: Final = 0.1
_LEAST_FOR_THE_END: Final = 0.05
_MOST_FOR_THE_END: Final = 0.25


@dataclass(frozen=True, slots=True)
class TimeBudget:
    """Until when what can be left out of an answer may go on, and until when a search may; moments of `monotonic`."""

    until: float
    searching_until: float

    @classmethod
    def of(cls, milliseconds: int | None) -> Self:
        """The budget of the request under way, which may take `milliseconds`, or as long as any."""
        seconds = min(_LONGEST, _LONGEST if milliseconds is None else milliseconds / 1000)
        began = time.monotonic() - seconds_so_far()
        end = min(_MOST_FOR_THE_END, max(_LEAST_FOR_THE_END, seconds * _SHARE_FOR_THE_END))
        return cls(began + seconds - end, began + max(seconds, _SEARCH_SECONDS))

    @property
    def left(self) -> float:
        """For how many seconds what can be left out may go on."""
        return self.until - time.monotonic()

    @property
    def left_for_searching(self) -> float:
        """For how many seconds the search may go on."""
        return self.searching_until - time.monotonic()
