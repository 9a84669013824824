"""A message in the broker."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from infra.local.iot.mqtt.encoding import encode
from infra.local.iot.mqtt.packets import Publish

if TYPE_CHECKING:
    from infra.local.iot.mqtt.properties import Properties


@dataclass(slots=True)
class BrokerMessage:
    """A published message."""

    topic: str
    payload: bytes
    properties: Properties | None = None
    _encoded: dict[int, bytes] = field(default_factory=dict)

    def packet(self, level: int) -> bytes:
        """Return the packet at QoS 0, encoded once for all clients of a level."""
        data = self._encoded.get(level)
        if data is None:
            data = self._encoded[level] = encode(Publish(self.topic, self.payload, properties=self.properties), level)
        return data
