"""The transport to devices inside the process of their broker: no connection, no subscription and no HTTP."""

from __future__ import annotations

import math
import time
from contextlib import nullcontext
from typing import TYPE_CHECKING, Final

from infra.local.iot.broker.broker import DataPlaneError
from infra.local.iot.broker.messages import BrokerMessage
from shared.devices import errors
from shared.devices.ids import down, up
from shared.devices.mqtt.data_plane import was_sent
from shared.devices.mqtt.transport import broker_unavailable
from shared.platform.token_bucket import BucketSize, TokenBucket
from shared.platform.ttl_cache import TtlCache
from shared.rpc.errors import TooManyRequests

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from infra.local.iot.broker.local_broker import LocalBroker
    from shared.devices.registry import RegisteredDevice

_SHARE: Final = 0.9
"""The part of a device's publish rate that calls use. The broker discards what a device sends above it."""
_IDLE_SECONDS: Final = 60.0


class BrokerTransport:
    """The transport of one broker. The caller's thread checks a message, and the broker's writes it.

    Nothing waits for the write: if the device disconnects just before it, its presence ends the call.
    """

    on_message: Callable[[str, bytes], None]

    def __init__(self, broker: LocalBroker) -> None:
        self.on_message = lambda _device_id, _message: None
        self._local = broker
        rate = broker.broker.limits.publishes_per_second
        self._rate = BucketSize(max(1, int(rate * _SHARE)), int(rate * _SHARE * 60)) if rate else None
        self._buckets: TtlCache[str, TokenBucket] = TtlCache(_IDLE_SECONDS, capacity=10_000)
        broker.listen(up("+"), self._receive)

    def subscribed(self, device_id: str, deadline: float) -> AbstractContextManager[None]:
        """Wait until the device may send a reply. Raise TooManyRequests if that is past `deadline`."""
        if self._rate:
            bucket = self._buckets.get(device_id) or self._buckets.put(device_id, TokenBucket(self._rate))
            now = time.monotonic()
            longest = max(0.0, deadline - now)
            pause = bucket.reserve(now, longest)
            if pause > longest:
                raise TooManyRequests(
                    "The device gets more calls than it may send replies; nothing was sent.",
                    retry_after_seconds=math.ceil(pause),
                )
            time.sleep(pause)
        return nullcontext()

    def send(self, device: RegisteredDevice, message: bytes) -> None:
        """Send once. Raise DEVICE_OFFLINE if the device is disconnected."""
        broker, publication = self._local.broker, BrokerMessage(down(device.id), message)
        try:
            if device.downlink == "direct":
                action = broker.receiver(device.id, publication).receive
            elif broker.is_connected(device.id):
                action = broker.publish
            else:
                raise errors.offline(device.id)
            self._local.post(action, publication)
        except DataPlaneError as error:
            if not was_sent(error.status):
                raise errors.offline(device.id) from None
        except RuntimeError:
            raise broker_unavailable() from None

    def _receive(self, message: BrokerMessage) -> None:
        self.on_message(message.topic.split("/")[1], message.payload)
