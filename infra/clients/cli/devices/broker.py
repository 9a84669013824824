"""The devices' broker as used by commands: the local server's or a deployed stack's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from infra.clients.cli.target import exit_with_error
from infra.local.data_folder import running_server
from shared.platform.config import config

if TYPE_CHECKING:
    from collections.abc import Collection

    from infra.clients.cli.target import DataTarget


_DEFAULT_PORTS: Final = {"mqtt": 1883, "mqtts": 8883}


def host_and_port(url: str, schemes: Collection[str] = ("mqtt",)) -> tuple[str, int]:
    """Parse a broker's URL."""
    parts = urlsplit(url)
    try:
        port = _DEFAULT_PORTS.get(parts.scheme, 0) if parts.port is None else parts.port
    except ValueError:
        port = 0
    if parts.scheme not in schemes or not parts.hostname or not port:
        exit_with_error(f"'{url}' is not a broker URL, such as mqtt://127.0.0.1:1883.")
    return parts.hostname, port


def broker_endpoint(target: DataTarget) -> str:
    """Return the endpoint for devices with a user name and a password, as firmware takes it.

    It is an empty string if no local server runs, or if the server listens on an IPv6 address.
    """
    if target.stack:
        import boto3

        stacks = boto3.client("cloudformation").describe_stacks(StackName=target.stack)["Stacks"]
        outputs = {each["OutputKey"]: each["OutputValue"] for each in stacks[0].get("Outputs", [])}
        if "DeviceEndpoint" not in outputs:
            exit_with_error(f"The stack {target.stack} has no devices: deploy it with the parameter IotEndpoint.")
        domain = boto3.client("iot").describe_domain_configuration(domainConfigurationName=outputs["DeviceEndpoint"])
        return f"{domain['domainName']}:8883"
    server = running_server(target.data)
    return firmware_endpoint(server["mqtt_url"]) if server else ""


def firmware_endpoint(url: str) -> str:
    """Return host and port of a broker's URL. Firmware restarts for ever with a scheme or an IPv6 address."""
    host, port = host_and_port(url, tuple(_DEFAULT_PORTS))
    return "" if ":" in host else f"{host}:{port}"


def disconnect(target: DataTarget, device_id: str) -> None:
    """Close the device's connection and deactivate its certificates."""
    if target.stack:
        _deactivate_certificates(device_id)
        endpoint = config().iot_endpoint
        url = f"https://{endpoint}" if endpoint else None
    else:
        server = running_server(target.data)
        if server is None or not server["data_plane_url"]:
            return
        url = server["data_plane_url"]
    import boto3  # takes longer than the rest of the command

    plane = boto3.client("iot-data", endpoint_url=url)
    try:
        plane.delete_connection(clientId=device_id)
    except plane.exceptions.ResourceNotFoundException:  # it is not connected
        return


def _deactivate_certificates(device_id: str) -> None:
    import boto3

    iot = boto3.client("iot")
    try:
        pages = list(iot.get_paginator("list_thing_principals").paginate(thingName=device_id))
    except iot.exceptions.ResourceNotFoundException:  # it has no certificate
        return
    for page in pages:
        for principal in page["principals"]:
            iot.update_certificate(certificateId=principal.rpartition("/")[2], newStatus="INACTIVE")
