"""mosquitto, which tells of no presence, has the whole talk by publishing that the embedded broker has."""

from __future__ import annotations

import pytest

from tests.integration.test_device_by_publish import (  # noqa: F401 - they are run here too
    home,
    test_the_whole_talk,
    test_who_is_not_there_is_told_at_once,
)


@pytest.fixture(scope="module")
def broker_port(port: int) -> int:
    """mosquitto in the place of the embedded broker."""
    return port
