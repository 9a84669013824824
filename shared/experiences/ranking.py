"""The ranking of query results: a weighted sum of relevance, query count and recency, each normalised to 0-1.

No part depends on other experiences. Recency is measured from the end of the current month, not from the time of the
query, so that the order stays the same from one page to the next.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

RELEVANCE_FLOOR: Final = 0.25
"""The least relevance of a match."""
RELEVANCE_DECIMALS: Final = 4
_RELEVANCE_WEIGHT: Final = 0.6
_COUNT_WEIGHT: Final = 0.3
_RECENCY_WEIGHT: Final = 0.1
_MAX_COUNT: Final = 1_000_000
"""A higher query count does not raise the score."""
_HALF_LIFE_SECONDS: Final = 180 * 24 * 3600
_MORE_THAN_A_MONTH: Final = timedelta(days=32)


@dataclass(frozen=True, slots=True)
class ExperienceMatch:
    """An experience that matches a query, with the values that decide its rank."""

    id: str
    relevance: float
    query_count: int
    created: float


def final_score(relevance: float, query_count: int, created: float, until: float) -> float:
    """Return the weighted sum, in 0-1."""
    return (
        _RELEVANCE_WEIGHT * relevance
        + _COUNT_WEIGHT * normalized_query_count(query_count)
        + _RECENCY_WEIGHT * normalized_recency(created, until)
    )


def normalized_query_count(query_count: int) -> float:
    """Scale a count to 0-1: its logarithm relative to that of a million."""
    return min(1.0, math.log1p(query_count) / math.log1p(_MAX_COUNT))


def normalized_recency(created: float, until: float) -> float:
    """Scale a creation time to 0-1: halved for each 180 days before `until`, the end of the month."""
    return float(2.0 ** (-max(0.0, until - created) / _HALF_LIFE_SECONDS))


def month_end(now: datetime) -> float:
    """Return the end of the month of `now` in UTC, in seconds since 1970."""
    first = now.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    return (first + _MORE_THAN_A_MONTH).replace(day=1).timestamp()


def rank(matches: Iterable[ExperienceMatch], until: float) -> list[ExperienceMatch]:
    """Sort matches by score, best first. Of equal scores the newer comes first, then the smaller id."""
    return sorted(
        matches,
        key=lambda match: (
            -final_score(match.relevance, match.query_count, match.created, until),
            -match.created,
            match.id,
        ),
    )
