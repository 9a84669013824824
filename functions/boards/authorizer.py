"""IoT Core's custom authorizer for devices that connect with a user name and a password.

IoT Core invokes it again every five minutes, so a revoked device is disconnected by then. A failure denies access.
"""

import base64
import binascii
import hashlib
from typing import Any, Final

from api.deployment import BOARD_PASSWORDS, DEVICES, lambda_function, table
from shared.devices import ids
from shared.devices.registry import registry
from shared.platform.telemetry import correlation_id_from
from shared.rpc.errors import NotSignedIn
from shared.rpc.observation import observe

_TIME_LIMIT: Final = 5
"""Seconds; IoT Core waits no longer."""
_REFRESH_SECONDS: Final = 300
_MAX_CONNECTION_SECONDS: Final = 86_400
"""IoT Core's maximum."""


@lambda_function(
    table("Devices", "GetItem"),
    BOARD_PASSWORDS,
    timeout=_TIME_LIMIT,
    condition=DEVICES,
    concurrency="AuthorizerConcurrency",
)
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Return the policy of the device's own topics."""
    credentials = event.get("protocolData", {}).get("mqtt", {})
    connection_id = event.get("connectionMetadata", {}).get("id")
    try:
        with observe("boards/authorizer", correlation_id_from(connection_id)):
            device = registry().verify(
                credentials.get("clientId", ""), credentials.get("username", ""), _password(credentials)
            )
    except NotSignedIn:
        return {"isAuthenticated": False}
    _, partition, _, region, account, *_ = context.invoked_function_arn.split(":")
    return {
        "isAuthenticated": True,
        # A principal id may contain only letters and digits.
        "principalId": hashlib.sha256(device.id.encode()).hexdigest(),
        "disconnectAfterInSeconds": _MAX_CONNECTION_SECONDS,
        "refreshAfterInSeconds": _REFRESH_SECONDS,
        "policyDocuments": [_policy(f"arn:{partition}:iot:{region}:{account}", device.id)],
    }


def _policy(arn: str, device_id: str) -> dict[str, Any]:
    """Return the policy of one device, equal to the template's policy for devices with a certificate."""
    return {
        "Version": "2012-10-17",
        "Statement": [
            _allow("iot:Connect", f"{arn}:client/{device_id}"),
            _allow("iot:Publish", f"{arn}:topic/{ids.up(device_id)}"),
            _allow("iot:Subscribe", f"{arn}:topicfilter/{ids.down(device_id)}"),
            _allow("iot:Receive", f"{arn}:topic/{ids.down(device_id)}"),
        ],
    }


def _allow(action: str, resource: str) -> dict[str, str]:
    return {"Effect": "Allow", "Action": action, "Resource": resource}


def _password(credentials: dict[str, Any]) -> bytes:
    try:
        return base64.b64decode(credentials.get("password", ""), validate=True)
    except binascii.Error:
        raise NotSignedIn from None
