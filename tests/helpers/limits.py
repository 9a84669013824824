"""Time limits for tests, long enough that a slow machine never reaches them."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from tests.helpers.wait import CEILING_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator

LONG_SECONDS: Final = 3600.0
"""Longer than any test takes."""
DEVICE_LIMITS: Final = {
    "device_server.devices_alert._SECONDS": CEILING_SECONDS,
    "shared.devices.mqtt.board_endpoint._CONNECT_SECONDS": CEILING_SECONDS,
    "shared.devices.mqtt.board_endpoint._READ_SECONDS": CEILING_SECONDS,
    "shared.devices.mqtt.broker_endpoint._ACK_SECONDS": int(CEILING_SECONDS),
    "shared.devices.mqtt.broker_endpoint._CONNACK_MS": int(CEILING_SECONDS * 1000),
    # Half of the ceiling: a function that loses its broker to the server's end waits this long, and the server for it.
    "shared.devices.mqtt.connection._CONNECT_SECONDS": CEILING_SECONDS / 2,
    "shared.devices.mqtt.connection._RESPONSE_SECONDS": CEILING_SECONDS,
    "shared.devices.mqtt.data_plane._CONNECT_SECONDS": CEILING_SECONDS,
    "shared.devices.mqtt.data_plane._READ_SECONDS": CEILING_SECONDS,
}
"""Limits of calls to the broker and to AWS IoT."""
LIMITS: Final = DEVICE_LIMITS | {
    "shared.documents.immediate_indexing._EMBEDDED_SECONDS": LONG_SECONDS,
    "infra.clients.agent.web_fetch._SECONDS": CEILING_SECONDS,
    "shared.documents.unit_of_work._RETRY_SECONDS": LONG_SECONDS,
    "shared.documents.idempotency._CLAIM_SECONDS": int(LONG_SECONDS),
    "shared.aws.dynamodb_client._CONNECT_SECONDS": CEILING_SECONDS,
    "shared.aws.dynamodb_client._READ_SECONDS": CEILING_SECONDS,
    "shared.answering.pipeline._MAX_SECONDS": LONG_SECONDS,
    "shared.answering.pipeline._SEARCH_SECONDS": LONG_SECONDS,
    "shared.search.store.qdrant_rest._SECONDS": CEILING_SECONDS,
    "shared.language_model.SECONDS": CEILING_SECONDS,
    "shared.aws.secrets_manager._READ_SECONDS": CEILING_SECONDS,
    "shared.access.provider_client._SECONDS": CEILING_SECONDS,
    "shared.platform.http._CONNECT_SECONDS": CEILING_SECONDS,
    "shared.aws.signed_client._CREDENTIALS_SECONDS": CEILING_SECONDS,
    "shared.rpc.observation.REQUEST_SECONDS": LONG_SECONDS,
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
