"""The guarantees of MQTT, packet by packet, over real connections. tests/suites/mosquitto runs them on mosquitto."""

from __future__ import annotations

import pytest

from infra.local.iot.mqtt.packets import (
    MQTT_5,
    Pingreq,
    Pingresp,
    Puback,
    Publish,
    Suback,
    Subscribe,
    SubscriptionRequest,
    Unsuback,
    Unsubscribe,
)
from infra.local.iot.mqtt.properties import Properties
from infra.local.iot.mqtt.reason_codes import ReasonCode
from tests.helpers.mqtt_client import BACKEND, DOWN, UP, BrokerUnderTest, RawMqttClient, backend, client


def test_message_reaches_only_subscribers(served: BrokerUnderTest) -> None:
    with backend(served) as home, client(served, "lamp") as lamp, client(served, "fan") as fan:
        assert home.subscribe("devices/+/up") == [0]
        assert lamp.subscribe(DOWN) == [0]
        lamp.publish(UP, b"from the lamp")
        assert home.expect(Publish) == Publish(UP, b"from the lamp")
        home.publish(DOWN, b"to the lamp")
        assert lamp.expect(Publish) == Publish(DOWN, b"to the lamp")
        assert fan.settle() == []
        home.send(Unsubscribe(7, ["devices/+/up", "devices/never"]))
        assert home.expect(Unsuback) == Unsuback(7, [0, ReasonCode.NO_SUBSCRIPTION_EXISTED])
        lamp.publish(UP)
        lamp.settle()
        assert home.settle() == []


@pytest.mark.parametrize(("published", "subscribed", "arrives"), [(0, 1, 0), (1, 0, 0), (1, 1, 1)])
def test_effective_qos_is_the_lower_one(served: BrokerUnderTest, published: int, subscribed: int, arrives: int) -> None:
    with backend(served) as home, client(served, "lamp", MQTT_5) as lamp:
        home.subscribe(UP, qos=subscribed)
        lamp.publish(UP, b"x", qos=published, packet_id=9 if published else 0)
        if published:
            assert lamp.expect(Puback) == Puback(9)
        message = home.expect(Publish)
        assert (message.qos, message.duplicate) == (arrives, False)
        assert bool(message.packet_id) == bool(arrives)


@pytest.mark.parametrize(("level", "reason"), [(4, 0), (MQTT_5, ReasonCode.NO_MATCHING_SUBSCRIBERS)])
def test_mqtt5_puback_reports_no_matching_subscribers(served: BrokerUnderTest, level: int, reason: int) -> None:
    with client(served, "alone", level) as alone:
        alone.publish("devices/alone/up", b"x", qos=1, packet_id=9)
        assert alone.expect(Puback) == Puback(9, reason)


def test_mqtt5_properties_are_forwarded_and_dropped_for_mqtt3(served: BrokerUnderTest) -> None:
    properties = Properties(
        payload_format=True,
        content_type="application/json",
        response_topic="devices/lamp/down",
        correlation_data=b"\0\1",
        user_properties=[("a", "1"), ("a", "2"), ("đ", "")],
    )
    with client(served, "lamp", MQTT_5) as lamp, backend(served) as new, client(served, f"{BACKEND}-3") as old:
        new.subscribe(UP)
        old.subscribe(UP)
        lamp.publish(UP, b"{}", properties=properties)
        assert new.expect(Publish) == Publish(UP, b"{}", properties=properties)
        assert old.expect(Publish) == Publish(UP, b"{}")


def test_topic_aliases_resolve_to_topics(served: BrokerUnderTest) -> None:
    with backend(served) as home, client(served, "lamp", MQTT_5) as lamp:
        home.subscribe(UP)
        lamp.publish(UP, b"1", properties=Properties(topic_alias=8))
        lamp.publish("", b"2", properties=Properties(topic_alias=8))
        assert [home.expect(Publish), home.expect(Publish)] == [
            Publish(UP, b"1"),
            Publish(UP, b"2"),
        ]


def test_mqtt5_retain_handling(served: BrokerUnderTest) -> None:
    with backend(served) as home:
        topic = "devices/chosen/down"
        home.publish(topic, b"x", retain=True)
        for handling, comes in ((1, True), (1, False), (2, False), (0, True)):
            home.send(Subscribe(1, [SubscriptionRequest(topic, retain_handling=handling, retain_as_published=True)]))
            home.expect(Suback)
            assert bool(home.settle()) is comes, handling
        home.publish(topic, b"y", retain=True)
        assert home.expect(Publish).retain


def test_no_local_suppresses_own_messages(served: BrokerUnderTest) -> None:
    with backend(served) as home:
        home.send(Subscribe(1, [SubscriptionRequest(UP, no_local=True)]))
        home.expect(Suback)
        home.publish(UP)
        assert home.settle() == []


def test_payload_of_128_kb_is_accepted(served: BrokerUnderTest) -> None:
    with backend(served) as home, client(served, "lamp") as lamp:
        home.subscribe(UP)
        lamp.publish(UP, b"x" * 128 * 1024)
        assert len(home.expect(Publish).payload) == 128 * 1024


def test_persistent_session_queues_messages_while_offline(served: BrokerUnderTest) -> None:
    with backend(served) as home:
        with client(served, "sleeper", clean=False) as sleeper:
            sleeper.subscribe("devices/sleeper/down", qos=1)
            home.publish("devices/sleeper/down", b"unacknowledged", qos=1, packet_id=1)
            assert sleeper.expect(Publish).payload == b"unacknowledged"
        home.expect(Puback)
        for number, qos in ((2, 1), (0, 0), (3, 1)):
            home.publish("devices/sleeper/down", str(number).encode(), qos=qos, packet_id=number)
        home.settle()
        with RawMqttClient(served.port) as again:
            assert again.connect("sleeper", clean=False).session_present
            arrived = [again.expect(Publish) for _ in range(3)]
            assert [message.payload for message in arrived] == [b"unacknowledged", b"2", b"3"]
            again.send(*(Puback(message.packet_id) for message in arrived))
            again.settle()
        with RawMqttClient(served.port) as fresh:
            assert not fresh.connect("sleeper", clean=True).session_present
        with RawMqttClient(served.port) as after:
            assert not after.connect("sleeper", clean=False).session_present


def test_pingreq_gets_pingresp(served: BrokerUnderTest) -> None:
    with client(served, "lamp") as lamp:
        lamp.send(Pingreq(), Pingreq())
        assert [lamp.receive(), lamp.receive()] == [Pingresp(), Pingresp()]
