"""Tools of stock firmware that do not do what their descriptions and replies say."""

from typing import Any, Final

REBOOT: Final = "self.reboot"
UPGRADE: Final = "self.upgrade_firmware"
RESTARTING: Final = (REBOOT, UPGRADE)
"""Tools that restart the device before it replies, so that a success has no reply."""
_URL: Final = "url"


def is_failed_upgrade(content: list[dict[str, Any]]) -> bool:
    """Return True for the reply of a failed update: a device that could install one restarts and never replies."""
    return content == [{"type": "text", "text": "true"}]


def describe_restart(version: str, next_version: str | None) -> str:
    """Describe the restart of an update: the firmware's version before it, and after it if that is known."""
    if next_version is None:
        return "The device restarted to run the new firmware; 'devices/get' shows it once the device is back."
    if next_version == version:
        return f"The device restarted; the version of its firmware is {version}, as before."
    return f"The device restarted with firmware {next_version}; before, it was {version}."


def correct_schema(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    """Return the tool's input schema, with the URL of an update required.

    The firmware declares the parameter's description as its default, and would download from that.
    """
    properties = schema.get("properties", {})
    if name != UPGRADE or not isinstance(properties, dict):
        return schema
    url = properties.get(_URL, {"type": "string"})
    if not isinstance(url, dict):
        return schema
    required = schema.get("required")
    others = [each for each in required if each != _URL] if isinstance(required, list) else []
    described = {key: value for key, value in url.items() if key != "default"}
    return schema | {"properties": properties | {_URL: described}, "required": [*others, _URL]}
