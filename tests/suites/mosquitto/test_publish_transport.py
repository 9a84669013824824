"""mosquitto, which reports no presence, supports the same conversation by publishing as the embedded broker."""

from __future__ import annotations

import pytest

from tests.integration.devices.test_publish_transport import (  # noqa: F401 - they are run here too
    home,
    test_absent_device_is_reported_immediately,
    test_session_by_publishing,
)


@pytest.fixture(scope="module")
def broker_port(port: int) -> int:
    """Return mosquitto's port, which replaces the embedded broker's."""
    return port
