"""Validation of CONNECT packets and negotiation of the connection's terms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from infra.local.iot.broker.limits import fits
from infra.local.iot.mqtt.packets import MQTT_5
from infra.local.iot.mqtt.properties import Properties
from infra.local.iot.mqtt.reason_codes import ReasonCode

if TYPE_CHECKING:
    from infra.local.iot.broker.limits import Limits
    from infra.local.iot.mqtt.packets import Connect


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
        if connect.will.retain:
            return ReasonCode.RETAIN_NOT_SUPPORTED
        if not fits(limits, connect.will.topic):
            return ReasonCode.TOPIC_NAME_INVALID
        if len(connect.will.payload) > limits.payload_bytes:
            return ReasonCode.PACKET_TOO_LARGE
    return None


def negotiate(connect: Connect, limits: Limits, client_id: str) -> Properties:
    """Return the properties of an accepted client's CONNACK. Its session ends with the connection."""
    shortest, longest = limits.keepalive_seconds
    keepalive = min(max(connect.keepalive or longest, shortest), longest)
    return Properties(
        session_expiry=0 if connect.properties and connect.properties.session_expiry else None,
        maximum_qos=True,
        retain_available=False,
        maximum_packet_size=limits.packet_bytes,
        assigned_client_id=None if connect.client_id else client_id,
        identifier_available=False,
        shared_available=False,
        server_keepalive=keepalive if keepalive != connect.keepalive else None,
    )
