"""`kho devices alert`."""

import json

from infra.clients.cli.devices.client import DEFAULT_TARGET, DeviceTarget, open_client
from infra.clients.cli.target import AsJson


def alert(  # noqa: PLR0913 - one argument an option
    device_id: str,
    message: str,
    /,
    *,
    status: str = "",
    emotion: str = "",
    target: DeviceTarget = DEFAULT_TARGET,
    as_json: AsJson = False,
) -> None:
    """Show a text on a device's display and play a sound.

    Args:
        device_id: The device, from 'kho devices list'.
        message: The text.
        status: The title, in the status bar; by default Message.
        emotion: The face or the symbol on the display, such as happy, sad or surprised; by default neutral.
    """
    options = {"status": status, "emotion": emotion}
    params = {"device_id": device_id, "message": message} | {name: value for name, value in options.items() if value}
    with open_client(target) as client:
        sent = client.call("devices/alert", params)
    print(json.dumps(sent) if as_json else f"The alert was sent to {device_id}. Devices do not acknowledge alerts.")
