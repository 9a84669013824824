"""The process-wide device client, whose connections are kept between calls."""

from functools import cache

from shared.devices.device_client import DeviceClient
from shared.devices.mqtt.broker_endpoint import DirectBrokerEndpoint, IotCoreEndpoint
from shared.devices.mqtt.data_plane import data_plane
from shared.devices.mqtt.transport import MqttTransport
from shared.devices.registry import devices_table
from shared.devices.rpc import RpcClient
from shared.devices.vision import vision_offer
from shared.platform.config import config
from shared.platform.runtime import runtime
from shared.rpc.errors import Unavailable


@cache
def device_client() -> DeviceClient:
    """Return this process's device client. Without a transport of its own, it opens connections on demand."""
    transport = runtime.device_transport or MqttTransport(_broker_endpoint(), data_plane())
    return DeviceClient(devices_table(), RpcClient(transport), vision_offer)


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
