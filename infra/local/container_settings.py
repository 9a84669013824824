"""The settings by which a function in a container reaches the stores of the server on this machine."""

import os
from typing import Final

from infra.local.template import Template

LAMBDA_URL: Final = "http://127.0.0.1:3001"
"""The address of `sam local start-lambda`."""
_FUNCTION_PREFIX: Final = "KHO_FUNCTION_PREFIX"
"""SAM sets its own: it names functions by its own stack name."""


def container_settings(
    template: Template, *, store_url: str, mqtt_url: str, mqtt_token: str, data_plane_url: str
) -> dict[str, str]:
    """Return the environment variables of every function: addresses, the operator's settings, the template's values.

    SAM passes on only variables that the template declares.
    """
    addresses = {
        "AWS_ENDPOINT_URL_DYNAMODB": store_url,
        "AWS_ENDPOINT_URL_IOT_DATA_PLANE": data_plane_url,
        "AWS_ENDPOINT_URL_LAMBDA": LAMBDA_URL,
        "KHO_MQTT_URL": mqtt_url,
        "KHO_MQTT_TOKEN": mqtt_token,
    }
    settings = {name: os.environ.get(name) or value for name, value in template.environment.items()}
    settings.pop(_FUNCTION_PREFIX)
    return settings | addresses
