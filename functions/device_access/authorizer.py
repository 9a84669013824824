"""IoT Core's authorizer for firmware that knows a user name and a password: whose they are, and what it may touch.

IoT Core asks again every five minutes, so that a device that is revoked is gone by then. A failure lets nobody in.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import Any, Final

from api.deployment import lambda_function, table
from shared.devices import ids
from shared.devices.registry import registry
from shared.rpc.errors import NotSignedIn
from shared.telemetry import correlation_id_from, observe

_ASKED_AGAIN_SECONDS: Final = 300
_CONNECTED_SECONDS: Final = 86_400
"""The longest that there is."""


@lambda_function(table("Devices", "GetItem"), timeout=5)  # IoT Core waits no longer
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Answer with the policy of the device's own topics."""
    said = event.get("protocolData", {}).get("mqtt", {})
    proposed = event.get("connectionMetadata", {}).get("id")
    try:
        with observe("device_access/authorizer", correlation_id_from(proposed)):
            device = registry().verify(said.get("clientId", ""), said.get("username", ""), _password(said))
    except NotSignedIn:
        return {"isAuthenticated": False}
    _, partition, _, region, account, *_ = context.invoked_function_arn.split(":")
    return {
        "isAuthenticated": True,
        # It takes letters and digits alone.
        "principalId": hashlib.sha256(device.id.encode()).hexdigest(),
        "disconnectAfterInSeconds": _CONNECTED_SECONDS,
        "refreshAfterInSeconds": _ASKED_AGAIN_SECONDS,
        "policyDocuments": [_policy(f"arn:{partition}:iot:{region}:{account}", device.id)],
    }


def _policy(arn: str, device_id: str) -> dict[str, Any]:
    """What the template's policy of devices with a certificate says of their thing, for this device."""
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


def _password(said: dict[str, Any]) -> bytes:
    try:
        return base64.b64decode(said.get("password", ""), validate=True)
    except binascii.Error:
        raise NotSignedIn from None
