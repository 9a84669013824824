"""Validation of CONNECT packets and negotiation of the connection's terms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from infra.local.iot.broker.limits import fits
from infra.local.iot.mqtt.packets import MQTT_5
from infra.local.iot.mqtt.properties import Properties
from infra.local.iot.mqtt.reason_codes import ReasonCode

if TYPE_CHECKING:
    from infra.local.iot.broker.limits import Limits
    from infra.local.iot.mqtt.packets import Connect


@dataclass(frozen=True, slots=True)
class ConnectTerms:
    """The negotiated terms of a connection."""

    keepalive: int
    session_expiry: int
    receive_maximum: int
    packet_bytes: int | None
    properties: Properties | None
    """The properties of the CONNACK, in MQTT 5."""


def connect_error(connect: Connect, limits: Limits) -> ReasonCode | None:
    """Return the reason to reject a CONNECT, regardless of the client's identity."""
    if len(connect.client_id.encode("utf-8")) > limits.client_id_bytes:
        return ReasonCode.CLIENT_IDENTIFIER_NOT_VALID
    if not connect.client_id and not connect.clean and connect.level != MQTT_5:
        return ReasonCode.CLIENT_IDENTIFIER_NOT_VALID
    if connect.properties and connect.properties.authentication_method is not None:
        return ReasonCode.BAD_AUTHENTICATION_METHOD
    if connect.will:
        if connect.will.qos == 2:
            return ReasonCode.QOS_NOT_SUPPORTED
        if not fits(limits, connect.will.topic):
            return ReasonCode.TOPIC_NAME_INVALID
        if len(connect.will.payload) > limits.payload_bytes:
            return ReasonCode.PACKET_TOO_LARGE
    return None


def negotiate(connect: Connect, limits: Limits, client_id: str) -> ConnectTerms:
    """Return the terms granted to an accepted client."""
    shortest, longest = limits.keepalive_seconds
    keepalive = min(max(connect.keepalive or longest, shortest), longest)
    if connect.level != MQTT_5:
        return ConnectTerms(keepalive, 0 if connect.clean else limits.session_seconds, 65_535, None, None)
    requested = connect.properties or Properties()
    expiry = min(requested.session_expiry or 0, limits.session_seconds)
    return ConnectTerms(
        keepalive,
        expiry,
        requested.receive_maximum or 65_535,
        requested.maximum_packet_size,
        Properties(
            session_expiry=expiry if expiry != (requested.session_expiry or 0) else None,
            receive_maximum=limits.unacknowledged,
            maximum_qos=True,
            retain_available=True,
            maximum_packet_size=limits.packet_bytes,
            assigned_client_id=None if connect.client_id else client_id,
            topic_alias_maximum=limits.topic_aliases,
            wildcard_available=True,
            identifier_available=False,
            shared_available=False,
            server_keepalive=keepalive if keepalive != connect.keepalive else None,
        ),
    )
