"""The comparison with txtai at a tenth of the size: where an index is small, it is searched without a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.suites.bench.ingestion import compare
from tests.suites.bench.size import sized

if TYPE_CHECKING:
    from tests.suites.bench.tables import BenchTable

PAGES: Final = sized(4, full=100)


def tables() -> list[BenchTable]:
    """Measure ingestion and queries of few pages."""
    return compare(PAGES)
