"""IoT Core on one machine: the broker, its data plane, and the addresses that functions use."""

from __future__ import annotations

import asyncio
import secrets
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import uvicorn

from infra.local.environment import set_variables
from infra.local.iot.broker.authorization import FleetAccessRules
from infra.local.iot.broker.data_plane import DataPlaneApp
from infra.local.iot.broker.local_broker import LocalBroker
from infra.local.sockets import address_of, listen, raise_open_files
from shared.devices.registry import registry
from shared.rpc.errors import NotSignedIn

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator

    from infra.local.iot.broker.authorization import ClientIdentity
    from infra.local.iot.broker.broker import Broker
    from infra.local.iot.broker.limits import Limits
    from infra.local.iot.external_broker import ExternalBroker


@dataclass(frozen=True, slots=True)
class BrokerAddress:
    """The addresses of the devices' broker, and the backend's token."""

    mqtt_url: str
    token: str
    data_plane_url: str
    """Empty if the broker has no data plane: it then reaches only subscribed devices and reports no presence."""


@dataclass(frozen=True, slots=True)
class LocalIotCore(BrokerAddress):
    """A broker that rules can listen to."""

    broker: LocalBroker | ExternalBroker


@dataclass(frozen=True, slots=True)
class EmbeddedIotCore(LocalIotCore):
    """The broker of this process."""

    broker: LocalBroker


@contextmanager
def run_embedded(
    listener: socket.socket, limits: Limits, *, authorizing: bool, clock: Callable[[], float] | None = None
) -> Iterator[EmbeddedIotCore]:
    """Serve MQTT on the given listener, and the data plane on loopback, until the context exits."""
    raise_open_files()
    token = secrets.token_urlsafe(32)
    broker = LocalBroker(
        listener, FleetAccessRules(token, _authenticate if authorizing else _register_on_connect), limits, clock
    )
    plane = listen("127.0.0.1", 0)
    server: list[uvicorn.Server] = []

    async def serve(embedded: Broker) -> None:
        settings = uvicorn.Config(
            DataPlaneApp(embedded, token),
            lifespan="off",
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_keep_alive=65,
        )
        server.append(uvicorn.Server(settings))
        await server[0].serve(sockets=[plane])

    serving = broker.run(serve)
    try:
        plane_url = f"http://127.0.0.1:{plane.getsockname()[1]}/{token}"
        yield EmbeddedIotCore(address_of(listener, "mqtt"), token, plane_url, broker)
    finally:
        for each in server:
            each.should_exit = each.force_exit = True
        serving.result()
        broker.close()


@contextmanager
def use_external(url: str, token: str) -> Iterator[LocalIotCore]:
    """Use an external broker, which authenticates its clients itself."""
    from infra.local.iot.external_broker import ExternalBroker

    broker = ExternalBroker(url, token)
    try:
        yield LocalIotCore(url, token, "", broker)
    finally:
        broker.close()


def configure_functions(address: BrokerAddress) -> None:
    """Make every function of this process use this broker."""
    set_variables(
        {
            "AWS_ENDPOINT_URL_IOT_DATA_PLANE": address.data_plane_url,
            "KHO_MQTT_URL": address.mqtt_url,
            "KHO_MQTT_TOKEN": address.token,
        }
    )


async def _authenticate(client: ClientIdentity) -> bool:
    """Return True if the device's password is correct, as IoT Core's authorizer does."""
    try:
        await asyncio.to_thread(registry().verify, client.client_id, client.user_name or "", client.password or b"")
    except NotSignedIn:
        return False
    return True


async def _register_on_connect(client: ClientIdentity) -> bool:
    """Register an unknown device. Return False if the device is revoked."""
    device = await asyncio.to_thread(registry().find_or_register, client.client_id)
    return device is not None and device.revoked_at is None
