"""The limits of calls to devices, raised to the ceiling of tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.helpers.wait import CEILING_SECONDS

if TYPE_CHECKING:
    import pytest

_SECONDS: Final = (
    "device_server.connection._ANSWER_SECONDS",
    "device_server.connection._CONNECT_SECONDS",
    "device_server.data_plane._CONNECT_SECONDS",
    "device_server.data_plane._READ_SECONDS",
    "shared.devices.talks._LISTING_SECONDS",
    "shared.devices.talks._READ_AGAIN_SECONDS",
    "workers.device_inbox._HANDSHAKE_SECONDS",
    "workers.device_presence._HANDSHAKE_SECONDS",
)


def be_patient(patch: pytest.MonkeyPatch) -> None:
    """Wait for broker, data plane and devices as long as a busy machine takes."""
    for name in _SECONDS:
        patch.setattr(name, CEILING_SECONDS)
    patch.setattr("device_server.place._ACK_SECONDS", int(CEILING_SECONDS))
    patch.setattr("device_server.place._CONNACK_MS", int(CEILING_SECONDS * 1000))
