"""MQTT packets."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from infra.local.iot.mqtt.properties import Properties

MQTT_3: Final = 4
MQTT_5: Final = 5


class Kind(IntEnum):
    """Packet types, by the number in the first byte; WILL is the part of CONNECT with properties of its own."""

    WILL = 0
    CONNECT = 1
    CONNACK = 2
    PUBLISH = 3
    PUBACK = 4
    SUBSCRIBE = 8
    SUBACK = 9
    UNSUBSCRIBE = 10
    UNSUBACK = 11
    PINGREQ = 12
    PINGRESP = 13
    DISCONNECT = 14


RESERVED_FLAGS: Final = {Kind.SUBSCRIBE: 2, Kind.UNSUBSCRIBE: 2}
"""The reserved flags in the first byte of a packet; 0 for types that are not listed."""

RETAIN: Final = 0x01
DUPLICATE: Final = 0x08
"""Flags of PUBLISH; its QoS is between them."""

CLEAN: Final = 0x02
WILL: Final = 0x04
WILL_RETAIN: Final = 0x20
PASSWORD: Final = 0x40
USER_NAME: Final = 0x80
"""Flags of CONNECT."""


@dataclass(slots=True)
class Will:
    """The message published for a client whose connection ends without a DISCONNECT."""

    topic: str
    payload: bytes
    qos: int = 0
    retain: bool = False
    properties: Properties | None = None


@dataclass(slots=True)
class Connect:
    """A client's first packet."""

    client_id: str
    level: int = MQTT_3
    clean: bool = True
    keepalive: int = 0
    will: Will | None = None
    user_name: str | None = None
    password: bytes | None = None
    properties: Properties | None = None


@dataclass(slots=True)
class Connack:
    """The response to CONNECT."""

    reason: int = 0
    properties: Properties | None = None


@dataclass(slots=True)
class Publish:
    """A message."""

    topic: str
    payload: bytes = b""
    qos: int = 0
    retain: bool = False
    packet_id: int = 0
    properties: Properties | None = None


@dataclass(slots=True)
class Puback:
    """The response to a PUBLISH at QoS 1."""

    packet_id: int
    reason: int = 0


@dataclass(slots=True)
class Subscribe:
    """A client's request to subscribe to filters, each with the QoS that it asks for."""

    packet_id: int
    requests: list[tuple[str, int]]
    properties: Properties | None = None


@dataclass(slots=True)
class Suback:
    """The response to SUBSCRIBE, with one reason code per filter."""

    packet_id: int
    reasons: list[int]


@dataclass(slots=True)
class Unsubscribe:
    """A client's request to unsubscribe."""

    packet_id: int
    topic_filters: list[str]


@dataclass(slots=True)
class Unsuback:
    """The response to UNSUBSCRIBE; MQTT 3.1.1 has no reason codes."""

    packet_id: int
    reasons: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Pingreq:
    """A keepalive request."""


@dataclass(slots=True)
class Pingresp:
    """The response to PINGREQ."""


@dataclass(slots=True)
class Disconnect:
    """The last packet of the side that ends the connection; the broker sends it only in MQTT 5."""

    reason: int = 0


Packet = (
    Connect | Connack | Publish | Puback | Subscribe | Suback | Unsubscribe | Unsuback | Pingreq | Pingresp | Disconnect
)
