"""Client ids and topics of devices and of the backend."""

import re
from typing import Final

from shared.rpc.names import deception

BACKEND_PREFIX: Final = "kho-backend-"
"""The prefix of the backend's own client ids; device ids may not use it."""
_THING_NAME: Final = re.compile(r"[A-Za-z0-9:_-]+", re.ASCII)
"""IoT Core's thing names."""
_CLIENT_ID: Final = re.compile(r"[^$/+#\x00-\x1f\x7f-\x9f][^/+#\x00-\x1f\x7f-\x9f]*")
_MAX_BYTES: Final = 128


def may_be_device(client_id: str) -> bool:
    """Return True if a client id is valid for a device. A wildcard or level in it would match other devices' topics."""
    return (
        _CLIENT_ID.fullmatch(client_id) is not None
        and len(client_id.encode("utf-8", "surrogatepass")) <= _MAX_BYTES
        and not client_id.startswith(BACKEND_PREFIX)
        and deception(client_id) is None
    )


def may_be_registered(device_id: str) -> bool:
    """Return True if the device id is also a valid thing name of IoT Core."""
    return _THING_NAME.fullmatch(device_id) is not None and may_be_device(device_id)


def up(device_id: str) -> str:
    """Return the topic that a device publishes on."""
    return f"devices/{device_id}/up"


def down(device_id: str) -> str:
    """Return the topic that a device receives messages on."""
    return f"devices/{device_id}/down"
