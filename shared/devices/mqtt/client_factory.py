"""This process's talks with devices, over connections that are kept from call to call."""

from __future__ import annotations

from functools import cache

from shared.aws.secrets_manager import get_secret
from shared.config import config
from shared.devices.device_client import DeviceClient
from shared.devices.handshake import capabilities
from shared.devices.mqtt.broker_endpoint import DirectBrokerEndpoint, IotCoreEndpoint
from shared.devices.mqtt.data_plane import IotDataPlaneClient
from shared.devices.mqtt.transport import MqttTransport
from shared.devices.registry import devices_table
from shared.devices.rpc import RpcClient
from shared.rpc.errors import Unavailable


@cache
def device_client() -> DeviceClient:
    """The one place from which this process talks to devices."""
    settings = config()
    place, plane = _broker_endpoint(), data_plane()
    exchange = RpcClient(lambda take: MqttTransport(place, plane, take))
    try:
        offered = capabilities(settings.vision_url, get_secret("KHO_VISION_TOKEN") if settings.vision_url else "")
    except Unavailable:
        offered = capabilities("", "")  # a camera is told later where its pictures go: calls go on
    return DeviceClient(devices_table(), exchange, offered)


@cache
def data_plane() -> IotDataPlaneClient | None:
    """IoT Core's data plane, or this machine's; none beside a broker that has no such thing."""
    url = _data_plane_url()
    return IotDataPlaneClient(url) if url else None


def reports_presence() -> bool:
    """Whether the broker tells who is connected."""
    return bool(_data_plane_url())


def _data_plane_url() -> str:
    settings = config()
    return settings.data_plane_url or (f"https://{settings.iot_endpoint}" if settings.iot_endpoint else "")


def _broker_endpoint() -> DirectBrokerEndpoint | IotCoreEndpoint:
    settings = config()
    if settings.mqtt_url:
        return DirectBrokerEndpoint(settings.mqtt_url, settings.mqtt_token, settings.mqtt_keepalive)
    if settings.iot_endpoint:
        return IotCoreEndpoint(settings.iot_endpoint, settings.mqtt_keepalive)
    raise Unavailable(
        "It is not known here where devices connect to; nothing was sent.",
        guidance="The operator deploys with IotEndpoint, which 'aws iot describe-endpoint' tells.",
    )
