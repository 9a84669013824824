"""mosquitto, which tells of no presence, has the whole talk by publishing that the embedded broker has."""

from __future__ import annotations

import pytest

from tests.integration.devices.test_publish_transport import (  # noqa: F401 - they are run here too
    home,
    test_absent_device_is_reported_immediately,
    test_session_by_publishing,
)


@pytest.fixture(scope="module")
def broker_port(port: int) -> int:
    """mosquitto in the place of the embedded broker."""
    return port
