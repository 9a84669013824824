"""IoT Core's question before it gives a device a certificate of its own: whether it is who it claims to be.

The claim certificate is in every device of a series, and so in many hands: a device must know its password too.
"""

from __future__ import annotations

from typing import Any

from api.deployment import lambda_function, table
from shared.devices.registry import registry
from shared.rpc.errors import NotSignedIn
from shared.telemetry import correlation_id_from, observe


@lambda_function(table("Devices", "GetItem"), timeout=5)  # IoT Core waits no longer
def handler(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    """Allow what is registered, under its own name alone."""
    said = event["parameters"]
    device_id, password = said.get("SerialNumber", ""), said.get("Password", "")
    try:
        with observe("device_access/provisioning", correlation_id_from(event.get("certificateId"))):
            registry().verify(device_id, device_id, password.encode())
    except NotSignedIn:
        return {"allowProvisioning": False}
    return {"allowProvisioning": True}
