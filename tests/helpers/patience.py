"""The limits of calls to devices, raised to the ceiling of tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.helpers.limits import DEVICE_LIMITS
from tests.helpers.wait import CEILING_SECONDS

if TYPE_CHECKING:
    import pytest

_HANDSHAKES: Final = (
    "shared.devices.device_client._LISTING_SECONDS",
    "shared.devices.device_client._REFRESH_INTERVAL_SECONDS",
    "workers.device_inbox._HANDSHAKE_SECONDS",
    "workers.device_presence._HANDSHAKE_SECONDS",
)


def be_patient(patch: pytest.MonkeyPatch) -> None:
    """Wait for broker, data plane and devices as long as a busy machine takes."""
    for name, seconds in (DEVICE_LIMITS | dict.fromkeys(_HANDSHAKES, CEILING_SECONDS)).items():
        patch.setattr(name, seconds)
