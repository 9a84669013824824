"""IoT Core's pre-provisioning hook: verify the device before it receives a certificate of its own.

All devices of a series share the claim certificate, so a device must also know its password. Boards that were claimed
by a code get no certificate: it would outlive their release.
"""

from typing import Any, Final

from api.deployment import DEVICES, lambda_function, table
from shared.devices.registry import registry
from shared.platform.telemetry import correlation_id_from
from shared.rpc.errors import NotSignedIn
from shared.rpc.observation import observe

_TIME_LIMIT: Final = 5
"""Seconds; IoT Core waits no longer."""


@lambda_function(table("Devices", "GetItem"), timeout=_TIME_LIMIT, condition=DEVICES)
def handler(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    """Allow a registered device to be provisioned under its own id."""
    parameters = event["parameters"]
    device_id, password = parameters.get("SerialNumber", ""), parameters.get("Password", "")
    try:
        with observe("boards/provisioning", correlation_id_from(event.get("certificateId"))):
            registry().verify(device_id, device_id, password.encode(), accepts_boards=False)
    except NotSignedIn:
        return {"allowProvisioning": False}
    return {"allowProvisioning": True}
