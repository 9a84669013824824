"""`kho devices claim` and `release`."""

import json

from infra.clients.cli.devices.client import DEFAULT_TARGET, DeviceTarget, open_client
from infra.clients.cli.target import AsJson


def claim(
    code: str,
    /,
    *,
    name: str,
    replaces: str = "",
    target: DeviceTarget = DEFAULT_TARGET,
    as_json: AsJson = False,
) -> None:
    """Claim a board by the code that it shows and speaks.

    Args:
        code: The six digits.
        name: A display name.
        replaces: A device that this board takes the place of; it is released.
    """
    params = {"code": code, "name": name} | ({"replaces": replaces} if replaces else {})
    with open_client(target) as client:
        device = client.call("devices/claim", params)
    print(json.dumps(device) if as_json else f"Device {device['device_id']} ({device['name']}) is claimed.")


def release(device_id: str, /, *, target: DeviceTarget = DEFAULT_TARGET, as_json: AsJson = False) -> None:
    """Release a device: its connection is closed, and a claimed board shows a code again at its next start.

    Args:
        device_id: Its id, from 'kho devices list'.
    """
    with open_client(target) as client:
        released = client.call("devices/release", {"device_id": device_id})
    print(json.dumps(released) if as_json else f"Device {device_id} is released since {released['released_at']}.")
