"""This process's talks with devices, over connections that are kept from call to call."""

from __future__ import annotations

from functools import cache

from device_server import table
from device_server.data_plane import DataPlane
from device_server.place import Broker, IotCore
from device_server.wire import MqttLine
from shared.config import config
from shared.devices.exchange import Exchange
from shared.devices.handshake import capabilities
from shared.devices.talks import Talks
from shared.rpc.errors import Unavailable
from shared.secrets import secret


@cache
def talks() -> Talks:
    """The one place from which this process talks to devices."""
    settings = config()
    place, plane = _place(), data_plane()
    exchange = Exchange(lambda take: MqttLine(place, plane, take))
    try:
        offered = capabilities(settings.vision_url, secret("KHO_VISION_TOKEN") if settings.vision_url else "")
    except Unavailable:
        offered = capabilities("", "")  # a camera is told later where its pictures go: calls go on
    return Talks(table(), exchange, offered)


@cache
def data_plane() -> DataPlane | None:
    """IoT Core's data plane, or this machine's; none beside a broker that has no such thing."""
    url = _data_plane_url()
    return DataPlane(url) if url else None


def tells_presence() -> bool:
    """Whether the broker tells who is connected."""
    return bool(_data_plane_url())


def _data_plane_url() -> str:
    settings = config()
    return settings.data_plane_url or (f"https://{settings.iot_endpoint}" if settings.iot_endpoint else "")


def _place() -> Broker | IotCore:
    settings = config()
    if settings.mqtt_url:
        return Broker(settings.mqtt_url, settings.mqtt_token, settings.mqtt_keepalive)
    if settings.iot_endpoint:
        return IotCore(settings.iot_endpoint, settings.mqtt_keepalive)
    raise Unavailable(
        "It is not known here where devices connect to; nothing was sent.",
        guidance="The operator deploys with IotEndpoint, which 'aws iot describe-endpoint' tells.",
    )
