"""The limits of calls to devices, raised to the ceiling of tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.helpers.wait import CEILING_SECONDS

if TYPE_CHECKING:
    import pytest

_SECONDS: Final = (
    "shared.devices.mqtt.connection._RESPONSE_SECONDS",
    "shared.devices.mqtt.connection._CONNECT_SECONDS",
    "shared.devices.mqtt.data_plane._CONNECT_SECONDS",
    "shared.devices.mqtt.data_plane._READ_SECONDS",
    "shared.devices.device_client._LISTING_SECONDS",
    "shared.devices.device_client._REFRESH_INTERVAL_SECONDS",
    "workers.device_inbox._HANDSHAKE_SECONDS",
    "workers.device_presence._HANDSHAKE_SECONDS",
)


def be_patient(patch: pytest.MonkeyPatch) -> None:
    """Wait for broker, data plane and devices as long as a busy machine takes."""
    for name in _SECONDS:
        patch.setattr(name, CEILING_SECONDS)
    patch.setattr("shared.devices.mqtt.broker_endpoint._ACK_SECONDS", int(CEILING_SECONDS))
    patch.setattr("shared.devices.mqtt.broker_endpoint._CONNACK_MS", int(CEILING_SECONDS * 1000))
