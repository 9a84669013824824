"""Direct messages, and the reasons for not sending one."""

from __future__ import annotations

import base64
import socket
import threading
from typing import Any

import pytest
from botocore.exceptions import ClientError

from infra.local.iot.broker import data_plane
from infra.local.iot.mqtt.packets import MQTT_5, Disconnect, Puback, Publish
from infra.local.iot.mqtt.properties import Properties
from tests.helpers.data_plane_errors import data_plane_error
from tests.helpers.mqtt_client import DOWN, EmbeddedBroker, client
from tests.helpers.wait import CEILING_SECONDS


@pytest.mark.parametrize("level", [4, MQTT_5])
def test_a_direct_message_needs_no_subscription(served: EmbeddedBroker, plane: Any, level: int) -> None:
    with client(served, "lamp", level) as lamp:
        answer = plane.send_direct_message(
            clientId="lamp",
            topic=DOWN,
            payload=b"\0{",
            contentType="application/json",
            responseTopic="devices/lamp/up",
            userProperties=[{"a": "1"}, {"b": "2"}],
            correlationData=base64.b64encode(b"\0\1").decode(),
            payloadFormatIndicator="UTF8_DATA",
        )
        assert answer["traceId"]
        message = lamp.expect(Publish)
        assert (message.topic, message.payload, message.qos) == (DOWN, b"\0{", 0)
        if level == MQTT_5:
            assert message.properties == Properties(
                payload_format=True,
                content_type="application/json",
                response_topic="devices/lamp/up",
                correlation_data=b"\0\1",
                user_properties=[("a", "1"), ("b", "2")],
            )


def test_a_confirmed_message_waits_for_the_device(
    served: EmbeddedBroker, plane: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_plane, "_CONFIRM_SECONDS", (1, 5, int(CEILING_SECONDS)))
    with client(served, "lamp") as lamp:
        answered = threading.Event()

        def acknowledge() -> None:
            message = lamp.expect(Publish)
            assert message.qos == 1
            answered.set()
            lamp.send(Puback(message.packet_id))

        device = threading.Thread(target=acknowledge)
        device.start()
        plane.send_direct_message(clientId="lamp", topic=DOWN, payload=b"x", confirmation=True, timeout=60)
        assert answered.is_set()
        device.join()


def test_unconfirmed_message_is_reported_as_undelivered(served: EmbeddedBroker, plane: Any) -> None:
    with client(served, "lamp") as lamp:
        refused = data_plane_error(plane.send_direct_message, clientId="lamp", topic=DOWN, confirmation=True, timeout=1)
        assert refused == (504, "GatewayTimeoutException", "No acknowledgement within 1 s")
        assert lamp.expect(Publish).topic == DOWN


def test_lost_connection_confirms_nothing(served: EmbeddedBroker, plane: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_plane, "_CONFIRM_SECONDS", (1, 5, int(CEILING_SECONDS)))
    lamp = client(served, "lamp")

    def vanish() -> None:
        lamp.expect(Publish)
        lamp.socket.close()

    device = threading.Thread(target=vanish)
    device.start()
    refused = data_plane_error(plane.send_direct_message, clientId="lamp", topic=DOWN, confirmation=True, timeout=60)
    assert refused == (504, "GatewayTimeoutException", "The connection was lost")
    device.join()


def test_direct_message_errors(served: EmbeddedBroker, plane: Any) -> None:
    send = plane.send_direct_message
    assert data_plane_error(send, clientId="missing", topic="devices/missing/down")[:2] == (
        404,
        "ResourceNotFoundException",
    )
    with client(served, "sleeper", clean=False) as sleeper:
        sleeper.send(Disconnect())
    assert "active persistent session" in data_plane_error(send, clientId="sleeper", topic="devices/sleeper/down")[2]
    with client(served, "lamp") as lamp:
        assert data_plane_error(send, clientId="lamp", topic="devices/fan/down")[:2] == (403, "ForbiddenException")
        large = data_plane_error(send, clientId="lamp", topic=DOWN, payload=b"x" * (128 * 1024 + 1))
        assert large[:2] == (413, "RequestEntityTooLargeException")
        for wrong in (
            {"topic": "devices/+/down"},
            {"topic": "$aws/x"},
            {"topic": "a/" * 8 + "a"},
            {"topic": DOWN, "confirmation": True, "timeout": 16},
            {"topic": DOWN, "responseTopic": "#"},
            {"topic": DOWN, "correlationData": "a"},
        ):
            assert data_plane_error(send, clientId="lamp", **wrong)[:2] == (400, "InvalidRequestException"), wrong
        assert lamp.settle() == []


def test_slow_device_is_reported_busy(served: EmbeddedBroker, plane: Any) -> None:
    with client(served, "deaf") as deaf:
        deaf.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        reason = None
        for _ in range(200):
            try:
                plane.send_direct_message(clientId="deaf", topic="devices/deaf/down", payload=b"x" * 100_000)
            except ClientError as error:
                reason = error.response["ResponseMetadata"]["HTTPStatusCode"], error.response["Error"]["Code"]
                break
        assert reason == (429, "ThrottlingException")
        deaf.socket.close()
