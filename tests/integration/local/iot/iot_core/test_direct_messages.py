"""Direct messages, and the reasons for not sending one."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from botocore.exceptions import ClientError

from infra.local.iot.mqtt.packets import MQTT_5, Publish
from tests.helpers.data_plane_errors import data_plane_error
from tests.helpers.mqtt_client import DOWN, UP, EmbeddedBroker, client


@pytest.mark.parametrize("level", [4, MQTT_5])
def test_a_direct_message_needs_no_subscription(served: EmbeddedBroker, plane: Any, level: int) -> None:
    with client(served, "lamp", level) as lamp:
        assert plane.send_direct_message(clientId="lamp", topic=DOWN, payload=b"\0{")["traceId"]
        assert lamp.expect(Publish) == Publish(DOWN, b"\0{")


def test_direct_message_errors(served: EmbeddedBroker, plane: Any) -> None:
    send = plane.send_direct_message
    assert data_plane_error(send, clientId="missing", topic="devices/missing/down")[:2] == (
        404,
        "ResourceNotFoundException",
    )
    with client(served, "lamp") as lamp:
        assert data_plane_error(send, clientId="lamp", topic="devices/fan/down")[:2] == (403, "ForbiddenException")
        large = data_plane_error(send, clientId="lamp", topic=DOWN, payload=b"x" * (128 * 1024 + 1))
        assert large[:2] == (413, "RequestEntityTooLargeException")
        for wrong in (
            {"topic": "devices/+/down"},
            {"topic": "$aws/x"},
            {"topic": "a/" * 8 + "a"},
            {"topic": DOWN, "confirmation": True},
            {"topic": DOWN, "responseTopic": UP},
            {"topic": DOWN, "correlationData": "AAE="},
            {"topic": DOWN, "userProperties": [{"a": "1"}]},
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
