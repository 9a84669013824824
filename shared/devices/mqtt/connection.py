"""One MQTT connection of the backend and its subscriptions to devices."""

from __future__ import annotations

import secrets
import threading
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

from shared.devices.ids import BACKEND_PREFIX, up
from shared.devices.mqtt.broker_endpoint import ConnectionCallbacks
from shared.platform.telemetry import logger
from shared.platform.token_bucket import BucketSize, TokenBucket

if TYPE_CHECKING:
    from collections.abc import Callable

    from shared.devices.mqtt.broker_endpoint import BrokerEndpoint

_MAX_SUBSCRIPTIONS: Final = 45
"""The subscriptions per connection; IoT Core allows 50."""
_FILTERS_PER_SUBSCRIBE: Final = 8
"""The filters per SUBSCRIBE that IoT Core allows."""
_TRUSTED_SECONDS: Final = 5.0
_RESPONSE_SECONDS: Final = 3.0
_CONNECT_SECONDS: Final = 3.0
_MAX_UNCLAIMED: Final = 200
"""A subscription without waiting callers is ended after this many messages."""
_PUBLISHES_PER_SECOND: Final = 90
"""Publishes per second; IoT Core discards messages above 100."""


class ConnectionClosed(Exception):
    """The connection can no longer be used."""


class Subscription:
    """A subscription to one device's topic, pinned by the callers that wait on it."""

    def __init__(self, connection: MqttConnection, device_id: str) -> None:
        self.connection = connection
        self.device_id = device_id
        self.pins = 0
        self.unclaimed = 0
        self.confirmed_at = 0.0
        """The wall-clock time of the last message or SUBACK; this clock goes on while a function is frozen."""
        self.last_message_at = 0.0
        """The wall-clock time of the device's last message."""
        self._lock = threading.Lock()

    def confirm(self, deadline: float) -> None:
        """Return once the subscription is known to be active. Raise ConnectionClosed otherwise."""
        with self._lock:
            if 0 <= time.time() - self.confirmed_at < _TRUSTED_SECONDS and self.connection.connected:
                return
            self.connection.subscribe(self, deadline)


class MqttConnection:
    """A connection that reconnects by itself and then renews the pinned subscriptions."""

    def __init__(self, endpoint: BrokerEndpoint, on_message: Callable[[str, bytes], None]) -> None:
        self._handle_message = on_message
        self._by_topic: OrderedDict[str, Subscription] = OrderedDict()
        self._lock = threading.Lock()
        self._is_up = threading.Event()
        self._retired = False
        self._max_idle_seconds = endpoint.keepalive * 1.5
        self._used_at = time.time()
        self._rate = TokenBucket(BucketSize(_PUBLISHES_PER_SECOND, _PUBLISHES_PER_SECOND * 60))
        self.client_id = f"{BACKEND_PREFIX}{secrets.token_hex(8)}"
        self._client = endpoint.create_client(
            self.client_id, ConnectionCallbacks(self._on_message, self._on_connected, self._on_lost)
        )
        self._client.start()

    @property
    def connected(self) -> bool:
        """True if the broker has accepted the connection and no loss is known."""
        return self._is_up.is_set()

    @property
    def stale(self) -> bool:
        """True if the connection idled so long that the broker has dropped it, and no caller waits on it."""
        if 0 <= time.time() - self._used_at <= self._max_idle_seconds:
            return False
        with self._lock:
            return not self._has_pins()

    def has_subscription(self, device_id: str) -> bool:
        """Return True if the connection has a subscription for the device."""
        with self._lock:
            return up(device_id) in self._by_topic

    def pin(self, device_id: str, *, existing: bool = False, evict: bool = True) -> Subscription | None:
        """Pin and return the device's subscription. Return None if it is not here, or there is no room for it."""
        topic = up(device_id)
        with self._lock:
            subscription = self._by_topic.get(topic)
            if subscription is None and (existing or not self._make_room(evict=evict)):
                return None
            subscription = subscription or Subscription(self, device_id)
            self._by_topic[topic] = subscription
            self._by_topic.move_to_end(topic)
            subscription.pins += 1
            subscription.unclaimed = 0
        self._used_at = time.time()
        return subscription

    def unpin(self, subscription: Subscription) -> None:
        """Unpin a subscription; it stays for the next caller."""
        with self._lock:
            subscription.pins -= 1
            is_done = self._retired and not self._has_pins()
        if is_done:
            self.close()

    def subscribe(self, subscription: Subscription, deadline: float) -> None:
        """Subscribe and wait for the SUBACK."""
        from awscrt.exceptions import AwsCrtError  # type: ignore[import-untyped]

        left = deadline - time.monotonic()
        if not self._is_up.wait(max(0.0, min(left, _CONNECT_SECONDS))):
            raise ConnectionClosed
        try:
            suback = self._send_subscribe([subscription]).result(max(0.0, min(left, _RESPONSE_SECONDS)))
        except (TimeoutError, AwsCrtError) as error:
            logger.warning("subscription failed", extra={"failure": type(error).__name__})
            raise ConnectionClosed from None
        if int(suback.reason_codes[0]) >= 0x80:
            logger.error("subscription rejected", extra={"reason": int(suback.reason_codes[0])})
            raise ConnectionClosed
        subscription.confirmed_at = time.time()

    def publish(self, topic: str, message: bytes) -> None:
        """Publish at QoS 0, once, within the broker's rate limit."""
        self._publish(topic, message, acknowledged=False)

    def publish_acknowledged(self, topic: str, message: bytes, device_id: str) -> bool:
        """Publish once. Return False if the broker reports no matching subscriber.

        Acknowledgement is requested only if the device has been silent for 5 s.
        """
        with self._lock:
            subscription = self._by_topic.get(up(device_id))
        if subscription and 0 <= time.time() - subscription.last_message_at < _TRUSTED_SECONDS:
            self._publish(topic, message, acknowledged=False)
            return True
        from awscrt import mqtt5  # type: ignore[import-untyped]
        from awscrt.exceptions import AwsCrtError

        published = self._publish(topic, message, acknowledged=True)
        try:
            puback = published.result(_RESPONSE_SECONDS).puback
        except (TimeoutError, AwsCrtError):
            return True  # it may have been published; the caller waits for the reply
        return puback is None or bool(puback.reason_code != mqtt5.PubackReasonCode.NO_MATCHING_SUBSCRIBERS)

    def _publish(self, topic: str, message: bytes, *, acknowledged: bool) -> Any:
        from awscrt import mqtt5

        time.sleep(self._rate.reserve(time.monotonic()))
        if not self.connected:
            raise ConnectionClosed
        qos = mqtt5.QoS.AT_LEAST_ONCE if acknowledged else mqtt5.QoS.AT_MOST_ONCE
        return self._client.publish(mqtt5.PublishPacket(topic=topic, payload=message, qos=qos))

    def retire(self) -> None:
        """Disconnect once no caller waits on the connection."""
        with self._lock:
            self._retired = True
            is_idle = not self._has_pins()
        if is_idle:
            self.close()

    def close(self) -> None:
        """Disconnect permanently."""
        self._is_up.clear()
        self._client.stop()

    def _has_pins(self) -> bool:
        return any(each.pins for each in self._by_topic.values())

    def _make_room(self, *, evict: bool) -> bool:
        if len(self._by_topic) < _MAX_SUBSCRIPTIONS:
            return True
        if not evict:
            return False
        for topic, subscription in self._by_topic.items():
            if not subscription.pins:
                self._remove(topic)
                return True
        return False

    def _remove(self, topic: str) -> None:
        from awscrt import mqtt5

        del self._by_topic[topic]
        self._client.unsubscribe(mqtt5.UnsubscribePacket([topic]))

    def _send_subscribe(self, subscriptions: list[Subscription]) -> Any:
        from awscrt import mqtt5

        filters = [mqtt5.Subscription(up(each.device_id), mqtt5.QoS.AT_MOST_ONCE) for each in subscriptions]
        return self._client.subscribe(mqtt5.SubscribePacket(filters))

    def _on_message(self, topic: str, payload: bytes) -> None:
        with self._lock:
            subscription = self._by_topic.get(topic)
            if subscription is None:
                return
            subscription.confirmed_at = subscription.last_message_at = self._used_at = time.time()
            if not subscription.pins:
                subscription.unclaimed += 1
                if subscription.unclaimed > _MAX_UNCLAIMED:
                    self._remove(topic)
                    return
        self._handle_message(subscription.device_id, payload)

    def _on_connected(self) -> None:
        self._used_at = time.time()
        with self._lock:
            pinned = [each for each in self._by_topic.values() if each.pins]
            for each in self._by_topic.values():
                each.confirmed_at = 0.0
        # Replies to earlier requests may still come, so waiting callers keep their subscriptions.
        for start in range(0, len(pinned), _FILTERS_PER_SUBSCRIBE):
            self._send_subscribe(pinned[start : start + _FILTERS_PER_SUBSCRIBE])
        self._is_up.set()

    def _on_lost(self, reason: str) -> None:
        was_up = self._is_up.is_set()
        self._is_up.clear()
        if was_up:
            logger.warning("broker connection lost", extra={"reason": reason})
