"""What IoT Core does beside MQTT: direct messages, connections, and rules, as boto3 and functions meet them."""

from __future__ import annotations

import base64
import json
import queue
import socket
import threading
import time
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import boto3
import pytest
import urllib3
from botocore.config import Config
from botocore.exceptions import ClientError

from infra.local.broker.limits import Limits
from infra.local.functions import Functions
from infra.local.iot import Embedded, embedded
from infra.local.listening import listen
from infra.local.mqtt.packets import MQTT_5, Disconnect, Puback, Publish, Will
from infra.local.mqtt.properties import Properties
from infra.local.mqtt.reasons import Reason
from infra.local.rules.feeding import RuleFeeder
from infra.local.template import Function, RuleTrigger
from shared.devices.registry import registry
from tests import rule_functions
from tests.mqtt import SECONDS, Served, Wire, client

if TYPE_CHECKING:
    from collections.abc import Iterator

DOWN = "devices/lamp/down"


@pytest.fixture(scope="module")
def core() -> Iterator[Embedded]:
    with embedded(listen("127.0.0.1", 0), Limits(), authorizing=False) as running:
        yield running


@pytest.fixture(scope="module")
def served(core: Embedded) -> Served:
    return Served(core.broker, int(core.mqtt_url.rpartition(":")[2]))


@pytest.fixture(scope="module")
def plane(core: Embedded) -> Any:
    """boto3's client, which is as much as device-server sees of IoT Core."""
    settings = Config(retries={"total_max_attempts": 1}, read_timeout=20)
    return boto3.client("iot-data", endpoint_url=core.data_plane_url, region_name="us-east-1", config=settings)


def refusal(call: Any, **arguments: Any) -> tuple[int, str, str]:
    """The status, the error's name and its message."""
    with pytest.raises(ClientError) as refused:
        call(**arguments)
    answer = refused.value.response
    return answer["ResponseMetadata"]["HTTPStatusCode"], answer["Error"]["Code"], answer["Error"]["Message"]


@pytest.mark.parametrize("level", [4, MQTT_5])
def test_a_direct_message_needs_no_subscription(served: Served, plane: Any, level: int) -> None:
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


def test_a_confirmed_message_waits_for_the_device(served: Served, plane: Any) -> None:
    with client(served, "lamp") as lamp:
        answered = threading.Event()

        def acknowledge() -> None:
            message = lamp.expect(Publish)
            assert message.qos == 1
            answered.set()
            lamp.send(Puback(message.packet_id))

        device = threading.Thread(target=acknowledge)
        device.start()
        plane.send_direct_message(clientId="lamp", topic=DOWN, payload=b"x", confirmation=True, timeout=15)
        assert answered.is_set()
        device.join()


def test_what_was_not_confirmed_is_not_known_to_be_delivered(served: Served, plane: Any) -> None:
    with client(served, "lamp") as lamp:
        started = time.monotonic()
        status, name, _ = refusal(plane.send_direct_message, clientId="lamp", topic=DOWN, confirmation=True, timeout=1)
        assert (status, name) == (504, "GatewayTimeoutException")
        assert time.monotonic() - started >= 1
        assert lamp.expect(Publish).topic == DOWN
    lamp = client(served, "lamp")
    threading.Timer(0.2, lamp.socket.shutdown, [socket.SHUT_RDWR]).start()
    started = time.monotonic()
    status, _, message = refusal(plane.send_direct_message, clientId="lamp", topic=DOWN, confirmation=True, timeout=15)
    assert (status, message) == (504, "The connection was lost")
    assert time.monotonic() - started < 10
    lamp.socket.close()


def test_why_a_direct_message_is_not_sent(served: Served, plane: Any) -> None:
    send = plane.send_direct_message
    assert refusal(send, clientId="nobody", topic="devices/nobody/down")[:2] == (404, "ResourceNotFoundException")
    with client(served, "sleeper", clean=False) as sleeper:
        sleeper.send(Disconnect())
    assert "active persistent session" in refusal(send, clientId="sleeper", topic="devices/sleeper/down")[2]
    with client(served, "lamp") as lamp:
        assert refusal(send, clientId="lamp", topic="devices/fan/down")[:2] == (403, "ForbiddenException")
        large = refusal(send, clientId="lamp", topic=DOWN, payload=b"x" * (128 * 1024 + 1))
        assert large[:2] == (413, "RequestEntityTooLargeException")
        for wrong in (
            {"topic": "devices/+/down"},
            {"topic": "$aws/x"},
            {"topic": "a/" * 8 + "a"},
            {"topic": DOWN, "confirmation": True, "timeout": 16},
            {"topic": DOWN, "responseTopic": "#"},
            {"topic": DOWN, "correlationData": "a"},
        ):
            assert refusal(send, clientId="lamp", **wrong)[:2] == (400, "InvalidRequestException"), wrong
        assert lamp.settle() == []


def test_a_device_that_does_not_read_is_busy(served: Served, plane: Any) -> None:
    with client(served, "deaf") as deaf:
        deaf.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        said = None
        for _ in range(200):
            try:
                plane.send_direct_message(clientId="deaf", topic="devices/deaf/down", payload=b"x" * 100_000)
            except ClientError as error:
                said = error.response["ResponseMetadata"]["HTTPStatusCode"], error.response["Error"]["Code"]
                break
        assert said == (429, "ThrottlingException")
        deaf.socket.close()


def test_get_connection_tells_presence(served: Served, plane: Any) -> None:
    before = int(time.time() * 1000)
    assert refusal(plane.get_connection, clientId="never-here")[:2] == (404, "ResourceNotFoundException")
    with client(served, "a b-ü", keepalive=240) as lamp:
        found = plane.get_connection(clientId="a b-ü", includeSocketInformation=True)
        del found["ResponseMetadata"]
        assert before <= found.pop("connectedSince") <= time.time() * 1000
        assert found == {
            "clientId": "a b-ü",
            "connected": True,
            "cleanSession": True,
            "keepAliveDuration": 240,
            "sessionExpiry": 0,
            "sourceIp": "127.0.0.1",
            "sourcePort": lamp.socket.getsockname()[1],
            "targetIp": "127.0.0.1",
            "targetPort": served.port,
        }
    found = plane.get_connection(clientId="a b-ü")
    assert (found["connected"], found["disconnectReason"]) == (False, "CONNECTION_LOST")
    assert before <= found["disconnectedSince"] <= time.time() * 1000
    assert "sourceIp" not in found


def test_delete_connection_ends_it(served: Served, plane: Any) -> None:
    with served.heard("devices/lamp/up") as wills:
        with client(served, "lamp", MQTT_5, will=Will("devices/lamp/up", b"gone")) as lamp:
            plane.delete_connection(clientId="lamp", preventWillMessage=True)
            assert lamp.expect(Disconnect).reason == Reason.ADMINISTRATIVE_ACTION
            assert lamp.receive() is None
        assert plane.get_connection(clientId="lamp")["disconnectReason"] == "API_INITIATED_DISCONNECT"
        assert wills.empty()
    with client(served, "sleeper", clean=False) as sleeper:
        sleeper.subscribe("devices/sleeper/down")
        plane.delete_connection(clientId="sleeper", cleanSession=True)
        assert sleeper.receive() is None
    with Wire(served.port) as again:
        assert not again.connect("sleeper", clean=False).session_present
    assert refusal(plane.delete_connection, clientId="nobody")[0] == 404


def test_publish_subscriptions_and_retained_messages(served: Served, plane: Any) -> None:
    with client(served, "lamp") as lamp:
        lamp.subscribe(DOWN, qos=1)
        found = plane.list_subscriptions(clientId="lamp")["subscriptions"]
        assert found == [{"topicFilter": DOWN, "qos": 1}]
        plane.publish(topic=DOWN, qos=1, payload=b"kept", retain=True)
        assert lamp.expect(Publish).payload == b"kept"
        assert plane.get_retained_message(topic=DOWN)["payload"] == b"kept"
        plane.publish(topic=DOWN, retain=True)
        assert refusal(plane.get_retained_message, topic=DOWN)[0] == 404
        assert refusal(plane.publish, topic="devices/+/down")[0] == 400


def test_who_does_not_know_the_way_finds_nothing(core: Embedded, served: Served) -> None:
    """A page in a browser on this machine can send requests here, but cannot guess the path."""
    base, _, token = core.data_plane_url.rpartition("/")
    with client(served, "lamp") as lamp, urllib3.PoolManager(retries=False) as http:
        query = f"connections/lamp/messages?topic={DOWN}"
        for path in (query, f"x/{query}", f"{token[:-1]}/{query}", f"{token.swapcase()}/{query}", ""):
            assert http.request("POST", f"{base}/{path}", body=b"x").status == 403
        assert lamp.settle() == []
        assert http.request("POST", f"{core.data_plane_url}/{query}", body=b"x").status == 200
        assert lamp.expect(Publish).payload == b"x"
        assert http.request("POST", f"{core.data_plane_url}/things/x/shadow").status == 404


def feed(core: Embedded, sql: str, handler: str) -> RuleFeeder:
    functions = Functions({"inbox": Function("inbox", f"tests.rule_functions.{handler}", 10.0)})
    return RuleFeeder([RuleTrigger(sql, "inbox")], core.broker, functions)


def test_a_rule_brings_messages_to_a_function(core: Embedded, served: Served) -> None:
    sql = "SELECT encode(*, 'base64') AS payload, topic(2) AS device_id, clientid() AS who FROM 'devices/+/up'"
    feeder = feed(core, sql, "record")
    with client(served, "lamp") as lamp:
        payloads = [b'{"type":"hello"}', b"\xff\0", b"", b'{"error":{"message":"a "quote""}}']
        for payload in payloads:
            lamp.publish("devices/lamp/up", payload)
        events = [rule_functions.taken.get(timeout=SECONDS) for _ in payloads]
        assert sorted(base64.b64decode(event["payload"]) for event in events) == sorted(payloads)
        assert {(event["device_id"], event["who"]) for event in events} == {("lamp", "lamp")}
        feeder.close()
        lamp.publish("devices/lamp/up", b"too late")
        lamp.settle()
    assert rule_functions.taken.empty()


def test_lifecycle_events_reach_a_function_that_crashed_once(core: Embedded, served: Served) -> None:
    feeder = feed(core, "SELECT * FROM '$aws/events/presence/connected/+' WHERE clientId = 'lamp'", "crash_once")
    with client(served, "fan"), client(served, "lamp"):
        event = rule_functions.taken.get(timeout=SECONDS)
        assert (event["clientId"], event["eventType"]) == ("lamp", "connected")
    feeder.close()
    assert len(rule_functions.crashes) == 2
    with pytest.raises(queue.Empty):
        rule_functions.taken.get_nowait()


def test_direct_messages_reach_no_rule(core: Embedded, served: Served) -> None:
    feeder = feed(core, "SELECT * FROM 'devices/#'", "record")
    with client(served, "lamp") as lamp:
        core.broker.send_direct_message("lamp", DOWN, b'{"a": 1}')
        assert lamp.expect(Publish).payload == b'{"a": 1}'
        lamp.publish("devices/lamp/up", json.dumps({"b": 2}).encode())
        assert rule_functions.taken.get(timeout=SECONDS) == {"b": 2}
    feeder.close()


@pytest.fixture(scope="module")
def guarded() -> Iterator[Embedded]:
    """IoT Core where keys are required."""
    with embedded(listen("127.0.0.1", 0), Limits(), authorizing=True) as core:
        yield core


@pytest.mark.parametrize(("level", "refused"), [(4, 5), (MQTT_5, Reason.NOT_AUTHORIZED)])
def test_where_keys_are_required_a_device_is_let_in_by_its_password(
    guarded: Embedded, tenant: str, level: int, refused: int
) -> None:
    port = int(guarded.mqtt_url.rpartition(":")[2])
    lamp, password = f"lamp-{uuid4().hex}", b""

    def says(user_name: str | None, given: bytes | None, client_id: str = lamp) -> int:
        with Wire(port, level) as wire:
            return wire.connect(client_id, user_name=user_name, password=given).reason

    assert says(lamp, b"x") == says(None, None) == refused
    password = registry().register(tenant, lamp)[1].encode()
    assert says(lamp, password) == 0
    assert says(lamp, password[:-1]) == says("other", password) == says(lamp, None) == refused
    assert says("other", password, "other") == says(lamp, password, "other") == refused
    registry().revoke(lamp)
    assert says(lamp, password) == refused
    assert says("kho", guarded.token.encode(), "kho-backend-1") == 0


def test_in_open_mode_whatever_connects_is_a_device_unless_it_was_revoked(core: Embedded, served: Served) -> None:
    lamp = f"lamp {uuid4().hex}"
    with client(served, lamp):
        assert registry().find("local", lamp)
    registry().revoke(lamp)
    with Wire(served.port) as wire:
        assert wire.connect(lamp).reason == 5
