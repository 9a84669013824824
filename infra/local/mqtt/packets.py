"""MQTT's packets, as both sides know them."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from infra.local.mqtt.properties import Properties

MQTT_3: Final = 4
MQTT_5: Final = 5


class Kind(IntEnum):
    """Packets, by the number in their first byte; WILL is the part of CONNECT that has properties of its own."""

    WILL = 0
    CONNECT = 1
    CONNACK = 2
    PUBLISH = 3
    PUBACK = 4
    PUBREC = 5
    PUBREL = 6
    PUBCOMP = 7
    SUBSCRIBE = 8
    SUBACK = 9
    UNSUBSCRIBE = 10
    UNSUBACK = 11
    PINGREQ = 12
    PINGRESP = 13
    DISCONNECT = 14
    AUTH = 15


RESERVED_FLAGS: Final = {Kind.SUBSCRIBE: 2, Kind.UNSUBSCRIBE: 2}
"""What the first byte says of some packets beside their kind, as MQTT has it; 0 of those that are not here."""

RETAIN: Final = 0x01
DUPLICATE: Final = 0x08
"""A PUBLISH's flags; its quality of service lies between them."""

CLEAN: Final = 0x02
WILL: Final = 0x04
WILL_RETAIN: Final = 0x20
PASSWORD: Final = 0x40
USER_NAME: Final = 0x80
"""A CONNECT's flags."""

NO_LOCAL: Final = 0x04
RETAIN_AS_PUBLISHED: Final = 0x08
"""A subscription's options in MQTT 5, after its quality of service and before how it handles what is retained."""


@dataclass(slots=True)
class Will:
    """The message that is published for a client which is gone without a word."""

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
    """The answer to CONNECT."""

    reason: int = 0
    session_present: bool = False
    properties: Properties | None = None


@dataclass(slots=True)
class Publish:
    """A message."""

    topic: str
    payload: bytes = b""
    qos: int = 0
    retain: bool = False
    duplicate: bool = False
    packet_id: int = 0
    properties: Properties | None = None


@dataclass(slots=True)
class Puback:
    """The answer to a PUBLISH at QoS 1."""

    packet_id: int
    reason: int = 0
    properties: Properties | None = None


@dataclass(slots=True)
class SubscriptionRequest:
    """One filter of a SUBSCRIBE."""

    topic_filter: str
    qos: int = 0
    no_local: bool = False
    retain_as_published: bool = False
    retain_handling: int = 0


@dataclass(slots=True)
class Subscribe:
    """What a client wants to receive."""

    packet_id: int
    requests: list[SubscriptionRequest]
    properties: Properties | None = None


@dataclass(slots=True)
class Suback:
    """The answer to SUBSCRIBE, one reason a filter."""

    packet_id: int
    reasons: list[int]
    properties: Properties | None = None


@dataclass(slots=True)
class Unsubscribe:
    """What a client no longer wants to receive."""

    packet_id: int
    topic_filters: list[str]
    properties: Properties | None = None


@dataclass(slots=True)
class Unsuback:
    """The answer to UNSUBSCRIBE; MQTT 3.1.1 gives no reasons."""

    packet_id: int
    reasons: list[int] = field(default_factory=list)
    properties: Properties | None = None


@dataclass(slots=True)
class Pingreq:
    """A sign of life."""


@dataclass(slots=True)
class Pingresp:
    """The answer to PINGREQ."""


@dataclass(slots=True)
class Disconnect:
    """The last packet of a side that ends the connection; of the broker only in MQTT 5."""

    reason: int = 0
    properties: Properties | None = None


Packet = (
    Connect | Connack | Publish | Puback | Subscribe | Suback | Unsubscribe | Unsuback | Pingreq | Pingresp | Disconnect
)
