"""What devices and the backend's own connections can be called."""

from __future__ import annotations

import re
from typing import Final

BACKEND_PREFIX: Final = "kho-backend-"
"""How the client ids of the backend's own connections begin; no device's may."""
_THING_NAME: Final = re.compile(r"[A-Za-z0-9:_-]+", re.ASCII)
"""What IoT Core lets a thing be called."""
_CLIENT_ID: Final = re.compile(r"[^$/+#\0][^/+#\0]*")
_MAX_BYTES: Final = 128


def may_be_device(client_id: str) -> bool:
    """Whether a client id can be a device's: with a wildcard or a level in it, its own topics would be others'."""
    return (
        _CLIENT_ID.fullmatch(client_id) is not None
        and len(client_id.encode("utf-8", "surrogatepass")) <= _MAX_BYTES
        and not client_id.startswith(BACKEND_PREFIX)
    )


def may_be_registered(device_id: str) -> bool:
    """Whether a device of this id can also be a thing of IoT Core."""
    return _THING_NAME.fullmatch(device_id) is not None and may_be_device(device_id)


def up(device_id: str) -> str:
    """The topic that a device publishes on."""
    return f"devices/{device_id}/up"


def down(device_id: str) -> str:
    """The topic that a device is reached on."""
    return f"devices/{device_id}/down"
