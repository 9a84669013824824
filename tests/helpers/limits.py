"""Time limits for tests, long enough that a slow machine never reaches them."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from tests.helpers.wait import CEILING_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator

LONG_SECONDS: Final = 3600.0
"""Longer than any test takes."""
LIMITS: Final = {
    "shared.services.immediate_indexing._EMBEDDED_SECONDS": LONG_SECONDS,
    "infra.agent.web_fetch._SECONDS": CEILING_SECONDS,
    "shared.documents.unit_of_work._RETRY_SECONDS": LONG_SECONDS,
    "shared.documents.idempotency._CLAIM_SECONDS": int(LONG_SECONDS),
    "shared.aws.dynamodb._CONNECT_SECONDS": CEILING_SECONDS,
    "shared.aws.dynamodb._READ_SECONDS": CEILING_SECONDS,
    "shared.knowledge.answering.pipeline._MAX_SECONDS": LONG_SECONDS,
    "shared.knowledge.answering.pipeline._SEARCH_SECONDS": LONG_SECONDS,
    "shared.knowledge.store.qdrant_rest._SECONDS": CEILING_SECONDS,
    "shared.language_model.SECONDS": CEILING_SECONDS,
    "shared.aws.secrets_manager._READ_SECONDS": CEILING_SECONDS,
    "shared.access.provider_client._CONNECT_SECONDS": CEILING_SECONDS,
    "shared.access.provider_client._READ_SECONDS": CEILING_SECONDS,
    "shared.aws.signed_client._CREDENTIALS_SECONDS": CEILING_SECONDS,
    "shared.telemetry.REQUEST_SECONDS": LONG_SECONDS,
    "shared.web_search.BUDGET_SECONDS": CEILING_SECONDS,
}
"""Production's limits by name. A test of one limit sets it to its own value."""


@contextmanager
def long_limits() -> Iterator[None]:
    """Raise the limits of this process."""
    import pytest  # not needed by servers with long limits

    with pytest.MonkeyPatch.context() as patch:
        for name, seconds in LIMITS.items():
            patch.setattr(name, seconds)
        yield
