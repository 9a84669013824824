"""A message in the broker."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from infra.local.iot.mqtt.encoding import publish
from infra.local.iot.mqtt.packets import MQTT_5, Publish

if TYPE_CHECKING:
    from infra.local.iot.mqtt.properties import Properties


@dataclass(slots=True)
class BrokerMessage:
    """A published message and its expiry."""

    topic: str
    payload: bytes
    qos: int = 0
    retain: bool = False
    properties: Properties | None = None
    sender: str = ""
    expires_at: float | None = None
    _encoded: dict[int, bytes] = field(default_factory=dict)

    def expired(self, now: float) -> bool:
        """Return True if the message has expired."""
        return self.expires_at is not None and now >= self.expires_at

    def packet(self, level: int, now: float, *, qos: int = 0, packet_id: int = 0, retain: bool = False) -> bytes:
        """Return the packet for one client. Packets at QoS 0 are encoded once for all clients of a level."""
        if qos or retain or self.expires_at is not None:
            return publish(
                Publish(
                    self.topic,
                    self.payload,
                    qos,
                    retain=retain,
                    packet_id=packet_id,
                    properties=self._remaining(now) if level == MQTT_5 else None,
                ),
                level,
            )
        data = self._encoded.get(level)
        if data is None:
            data = self._encoded[level] = publish(Publish(self.topic, self.payload, properties=self.properties), level)
        return data

    def _remaining(self, now: float) -> Properties | None:
        if self.expires_at is None or self.properties is None:
            return self.properties
        return replace(self.properties, message_expiry=max(0, int(self.expires_at - now)))
