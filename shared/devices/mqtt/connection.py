"""One MQTT connection of the backend's, and the devices that are heard on it."""

from __future__ import annotations

import secrets
import threading
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

from shared.devices.ids import BACKEND_PREFIX, up
from shared.devices.mqtt.broker_endpoint import ConnectionCallbacks
from shared.devices.mqtt.rate_limiter import RateLimiter
from shared.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Callable

    from shared.devices.mqtt.broker_endpoint import BrokerEndpoint

_SUBSCRIPTIONS: Final = 45
"""IoT Core allows 50 a connection."""
_FILTERS: Final = 8
"""IoT Core allows as many in one SUBSCRIBE."""
_TRUSTED_SECONDS: Final = 5.0
_ANSWER_SECONDS: Final = 3.0
_CONNECT_SECONDS: Final = 3.0
_UNHEARD: Final = 200
"""So many messages of a device that nobody waits for are let through before it is heard no more."""
_MOST_PUBLISHED: Final = 90
"""A second; IoT Core discards what is beyond 100."""


class ConnectionClosed(Exception):
    """The connection is no use any more."""


class Subscription:
    """One device's topic; those who wait for it pin it."""

    def __init__(self, connection: MqttConnection, device_id: str) -> None:
        self.connection = connection
        self.device_id = device_id
        self.pins = 0
        self.unheard = 0
        self.heard_at = 0.0
        """By the clock on the wall, which goes on while a function is frozen."""
        self.spoke_at = 0.0
        """When the device itself was last heard."""
        self._confirming = threading.Lock()

    def confirm(self, deadline: float) -> None:
        """Return once the broker is known to bring this topic here, or raise Gone."""
        with self._confirming:
            if 0 <= time.time() - self.heard_at < _TRUSTED_SECONDS and self.connection.connected:
                return
            self.connection.subscribe(self, deadline)


class MqttConnection:
    """Connects by itself, again and again, and each time subscribes anew to what is waited for."""

    def __init__(self, place: BrokerEndpoint, take: Callable[[str, bytes], None]) -> None:
        self._take = take
        self._by_topic: OrderedDict[str, Subscription] = OrderedDict()
        self._changing = threading.Lock()
        self._up = threading.Event()
        self._retired = False
        self._allowed_idle = place.keepalive * 1.5
        self._used_at = time.time()
        self._rate = RateLimiter(_MOST_PUBLISHED)
        self.client_id = f"{BACKEND_PREFIX}{secrets.token_hex(8)}"
        self._client = place.client(self.client_id, ConnectionCallbacks(self._received, self._connected, self._lost))
        self._client.start()

    @property
    def connected(self) -> bool:
        """Whether the broker has let the connection in, as far as is known."""
        return self._up.is_set()

    @property
    def stale(self) -> bool:
        """Whether it was idle for so long that the broker has dropped it, and nobody waits on it."""
        if 0 <= time.time() - self._used_at <= self._allowed_idle:
            return False
        with self._changing:
            return not any(each.pins for each in self._by_topic.values())

    def carries(self, device_id: str) -> bool:
        """Whether the device is heard here."""
        with self._changing:
            return up(device_id) in self._by_topic

    def pin(self, device_id: str, *, known: bool = False, evicting: bool = True) -> Subscription | None:
        """The device's subscription, to be unpinned; None where it is not here, or there is no room for it."""
        topic = up(device_id)
        with self._changing:
            found = self._by_topic.get(topic)
            if found is None and (known or not self._make_room(evicting=evicting)):
                return None
            found = found or Subscription(self, device_id)
            self._by_topic[topic] = found
            self._by_topic.move_to_end(topic)
            found.pins += 1
            found.unheard = 0
        self._used_at = time.time()
        return found

    def unpin(self, subscription: Subscription) -> None:
        """Nobody waits for it any more, as far as the caller is concerned; it stays for the next."""
        with self._changing:
            subscription.pins -= 1
            over = self._retired and not any(each.pins for each in self._by_topic.values())
        if over:
            self.close()

    def subscribe(self, subscription: Subscription, deadline: float) -> None:
        """Have the broker bring a topic here, and hear it say so."""
        from awscrt.exceptions import AwsCrtError  # type: ignore[import-untyped]

        left = deadline - time.monotonic()
        if not self._up.wait(max(0.0, min(left, _CONNECT_SECONDS))):
            raise ConnectionClosed
        try:
            granted = self._ask_for([subscription]).result(max(0.0, min(left, _ANSWER_SECONDS)))
        except (TimeoutError, AwsCrtError) as error:
            logger.warning("subscription failed", extra={"failure": type(error).__name__})
            raise ConnectionClosed from None
        if int(granted.reason_codes[0]) >= 0x80:
            logger.error("subscription refused", extra={"reason": int(granted.reason_codes[0])})
            raise ConnectionClosed
        subscription.heard_at = time.time()

    def publish(self, topic: str, message: bytes) -> None:
        """Send at QoS 0, once, no faster than the broker takes it."""
        self._publish(topic, message, acknowledged=False)

    def publish_acknowledged(self, topic: str, message: bytes, device_id: str) -> bool:
        """Send once; False where the broker says that nobody hears the topic, which it is asked where that may be."""
        with self._changing:
            known = self._by_topic.get(up(device_id))
        if known and time.time() - known.spoke_at < _TRUSTED_SECONDS:
            self._publish(topic, message, acknowledged=False)
            return True
        from awscrt import mqtt5  # type: ignore[import-untyped]
        from awscrt.exceptions import AwsCrtError

        sent = self._publish(topic, message, acknowledged=True)
        try:
            answer = sent.result(_ANSWER_SECONDS).puback
        except (TimeoutError, AwsCrtError):
            return True  # it may have been sent: whoever waits will hear
        return answer is None or bool(answer.reason_code != mqtt5.PubackReasonCode.NO_MATCHING_SUBSCRIBERS)

    def _publish(self, topic: str, message: bytes, *, acknowledged: bool) -> Any:
        from awscrt import mqtt5

        self._rate.wait()
        if not self.connected:
            raise ConnectionClosed
        qos = mqtt5.QoS.AT_LEAST_ONCE if acknowledged else mqtt5.QoS.AT_MOST_ONCE
        return self._client.publish(mqtt5.PublishPacket(topic=topic, payload=message, qos=qos))

    def retire(self) -> None:
        """Disconnect as soon as nobody waits for anything here."""
        with self._changing:
            self._retired = True
            waited = any(each.pins for each in self._by_topic.values())
        if not waited:
            self.close()

    def close(self) -> None:
        """Disconnect for good."""
        self._up.clear()
        self._client.stop()

    def _make_room(self, *, evicting: bool) -> bool:
        if len(self._by_topic) < _SUBSCRIPTIONS:
            return True
        if not evicting:
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

    def _ask_for(self, subscriptions: list[Subscription]) -> Any:
        from awscrt import mqtt5

        wanted = [mqtt5.Subscription(up(each.device_id), mqtt5.QoS.AT_MOST_ONCE) for each in subscriptions]
        return self._client.subscribe(mqtt5.SubscribePacket(wanted))

    def _received(self, topic: str, payload: bytes) -> None:
        with self._changing:
            subscription = self._by_topic.get(topic)
            if subscription is None:
                return
            subscription.heard_at = subscription.spoke_at = self._used_at = time.time()
            if not subscription.pins:
                subscription.unheard += 1
                if subscription.unheard > _UNHEARD:
                    self._remove(topic)
                    return
        self._take(subscription.device_id, payload)

    def _connected(self) -> None:
        self._used_at = time.time()
        with self._changing:
            waited = [each for each in self._by_topic.values() if each.pins]
            for each in self._by_topic.values():
                each.heard_at = 0.0
        # Replies to what was sent before may still come: whoever waits goes on hearing.
        for start in range(0, len(waited), _FILTERS):
            self._ask_for(waited[start : start + _FILTERS])
        self._up.set()

    def _lost(self, reason: str) -> None:
        was_up = self._up.is_set()
        self._up.clear()
        if was_up:
            logger.warning("broker lost", extra={"reason": reason})
