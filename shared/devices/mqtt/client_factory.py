"""The process-wide device client, whose connections are kept between calls."""

from __future__ import annotations

from functools import cache

from shared.devices.device_client import DeviceClient
from shared.devices.mqtt.broker_endpoint import DirectBrokerEndpoint, IotCoreEndpoint
from shared.devices.mqtt.data_plane import IotDataPlaneClient
from shared.devices.mqtt.transport import MqttTransport
from shared.devices.registry import devices_table
from shared.devices.rpc import RpcClient
from shared.devices.vision import vision_offer
from shared.platform.config import config
from shared.rpc.errors import Unavailable


@cache
def device_client() -> DeviceClient:
    """Return this process's device client. Its transport opens connections on demand."""
    transport = MqttTransport(_broker_endpoint(), data_plane())
    return DeviceClient(devices_table(), RpcClient(transport), vision_offer)


@cache
def data_plane() -> IotDataPlaneClient | None:
    """Return the client of IoT Core's or the local data plane, or None if the broker has none."""
    url = _data_plane_url()
    return IotDataPlaneClient(url) if url else None


def reports_presence() -> bool:
    """Return True if the broker reports which devices are connected."""
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
        "No broker for devices is configured; nothing was sent.",
        guidance="The operator sets IotEndpoint on deployment; 'aws iot describe-endpoint' shows its value.",
    )
