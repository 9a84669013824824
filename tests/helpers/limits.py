"""Time limits for tests: long enough that no machine reaches them by being slow."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from tests.helpers.wait import CEILING_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator

LONG_SECONDS: Final = 3600.0
"""Longer than any test takes."""
LIMITS: Final = {
    "agent_data.indexing_at_once._EMBEDDED_SECONDS": LONG_SECONDS,
    "infra.research.pages._SECONDS": CEILING_SECONDS,
    "shared.documents.changes._RETRYING_SECONDS": LONG_SECONDS,
    "shared.documents.requests._CLAIM_SECONDS": int(LONG_SECONDS),
    "shared.dynamodb_wire._CONNECT_SECONDS": CEILING_SECONDS,
    "shared.dynamodb_wire._READ_SECONDS": CEILING_SECONDS,
    "shared.knowledge.answering.budget._LONGEST": LONG_SECONDS,
    "shared.knowledge.answering.budget._SEARCH_SECONDS": LONG_SECONDS,
    "shared.knowledge.store.server._SECONDS": int(CEILING_SECONDS),
    "shared.language_model.SECONDS": CEILING_SECONDS,
    "shared.secrets._READ_SECONDS": CEILING_SECONDS,
    "shared.signed._CREDENTIALS_SECONDS": CEILING_SECONDS,
    "shared.telemetry.REQUEST_SECONDS": LONG_SECONDS,
    "shared.web_search.BUDGET_SECONDS": CEILING_SECONDS,
}
"""Production's limits by name. A test of one limit sets it to its own value."""


@contextmanager
def long_limits() -> Iterator[None]:
    """Raise the limits of this process."""
    import pytest  # servers with long limits do without it

    with pytest.MonkeyPatch.context() as patch:
        for name, seconds in LIMITS.items():
            patch.setattr(name, seconds)
        yield
