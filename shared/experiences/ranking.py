"""In which order experiences answer a query: the seed's formula, and how its parts are normalised.

No part depends on another record. Nor does recency depend on the moment of asking: it is told from the end of the
month, so that the order stays what it is from one page to the next.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

RELEVANCE_FLOOR: Final = 0.25
"""What is less relevant than this is no match."""
RELEVANCE_DECIMALS: Final = 4
_RELEVANCE: Final = 0.6
_COUNT: Final = 0.3
_RECENCY: Final = 0.1
_EVERYWHERE: Final = 1_000_000
"""As many queries as make the most that a count can do."""
_HALF_LIFE_SECONDS: Final = 180 * 24 * 3600
_MORE_THAN_A_MONTH: Final = timedelta(days=32)


@dataclass(frozen=True, slots=True)
class ExperienceMatch:
    """An experience that answers a query, as far as its place in the order depends on it."""

    id: str
    relevance: float
    query_count: int
    created: float


def final_score(relevance: float, query_count: int, created: float, until: float) -> float:
    """The seed's final_score, in 0-1."""
    return (
        _RELEVANCE * relevance
        + _COUNT * normalized_query_count(query_count)
        + _RECENCY * normalized_recency(created, until)
    )


def normalized_query_count(query_count: int) -> float:
    """A count in 0-1: its logarithm, as a share of that of a million."""
    return min(1.0, math.log1p(query_count) / math.log1p(_EVERYWHERE))


def normalized_recency(created: float, until: float) -> float:
    """How new, in 0-1: halved with each 180 days from the creation `until` the month's end."""
    return float(2.0 ** (-max(0.0, until - created) / _HALF_LIFE_SECONDS))


def month_end(now: datetime) -> float:
    """When the month of `now` ends, in UTC, in seconds since 1970."""
    first = now.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    return (first + _MORE_THAN_A_MONTH).replace(day=1).timestamp()


def rank(matches: Iterable[ExperienceMatch], until: float) -> list[ExperienceMatch]:
    """`matches`, best first; of equal ones the newer first, and then by id."""
    return sorted(
        matches,
        key=lambda each: (
            -final_score(each.relevance, each.query_count, each.created, until),
            -each.created,
            each.id,
        ),
    )
