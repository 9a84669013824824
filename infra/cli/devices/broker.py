"""The devices' broker, as commands meet it: this machine's, while it is served, or a deployed stack's."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from infra.cli.target import exit_with_error
from infra.local.data_folder import running_server

if TYPE_CHECKING:
    from collections.abc import Collection

    from infra.cli.target import DataTarget


_DEFAULT_PORTS: Final = {"mqtt": 1883, "mqtts": 8883}


def host_and_port(url: str, schemes: Collection[str] = ("mqtt",)) -> tuple[str, int]:
    """Where a broker's address leads."""
    parts = urlsplit(url)
    try:
        port = _DEFAULT_PORTS.get(parts.scheme, 0) if parts.port is None else parts.port
    except ValueError:
        port = 0
    if parts.scheme not in schemes or not parts.hostname or not port:
        exit_with_error(f"'{url}' is no broker's address; one is mqtt://127.0.0.1:1883.")
    return parts.hostname, port


def broker_endpoint(where: DataTarget) -> str:
    """Where devices with a user name and a password connect to; nothing where nobody serves."""
    if where.stack:
        import boto3

        found = boto3.client("iot").describe_domain_configuration(domainConfigurationName=f"{where.stack}-devices")
        return f"mqtts://{found['domainName']}:8883"
    running = running_server(where.data)
    return running["mqtt_url"] if running else ""


def disconnect(where: DataTarget, device_id: str) -> None:
    """End the device's connection, and let its certificates open nothing any more."""
    import boto3

    if where.stack:
        _deactivate_certificates(device_id)
        account = os.environ.get("KHO_IOT_ENDPOINT")
        plane = boto3.client("iot-data", endpoint_url=f"https://{account}" if account else None)
    else:
        running = running_server(where.data)
        if running is None or not running["data_plane_url"]:
            return
        plane = boto3.client("iot-data", endpoint_url=running["data_plane_url"])
    try:
        plane.delete_connection(clientId=device_id)
    except plane.exceptions.ResourceNotFoundException:  # it is not connected
        return


def _deactivate_certificates(device_id: str) -> None:
    import boto3

    iot = boto3.client("iot")
    try:
        pages = list(iot.get_paginator("list_thing_principals").paginate(thingName=device_id))
    except iot.exceptions.ResourceNotFoundException:  # it never had one
        return
    for page in pages:
        for principal in page["principals"]:
            iot.update_certificate(certificateId=principal.rpartition("/")[2], newStatus="INACTIVE")
