"""The guarantees of MQTT, packet by packet, over real connections. tests/suites/mosquitto runs them on mosquitto."""

from __future__ import annotations

import pytest

from infra.local.iot.mqtt.packets import MQTT_5, Pingreq, Pingresp, Puback, Publish, Unsuback, Unsubscribe
from infra.local.iot.mqtt.properties import Properties
from infra.local.iot.mqtt.reason_codes import ReasonCode
from tests.helpers.mqtt_client import BACKEND, DOWN, UP, BrokerUnderTest, backend, client


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


@pytest.mark.parametrize(("published", "subscribed"), [(0, 1), (1, 0)])
def test_effective_qos_is_the_lower_one(served: BrokerUnderTest, published: int, subscribed: int) -> None:
    with backend(served) as home, client(served, "lamp", MQTT_5) as lamp:
        home.subscribe(UP, qos=subscribed)
        lamp.publish(UP, b"x", qos=published, packet_id=9 if published else 0)
        if published:
            assert lamp.expect(Puback) == Puback(9)
        assert home.expect(Publish) == Publish(UP, b"x")


@pytest.mark.parametrize(("level", "reason"), [(4, 0), (MQTT_5, ReasonCode.NO_MATCHING_SUBSCRIBERS)])
def test_mqtt5_puback_reports_no_matching_subscribers(served: BrokerUnderTest, level: int, reason: int) -> None:
    with client(served, "alone", level) as alone:
        alone.publish("devices/alone/up", b"x", qos=1, packet_id=9)
        assert alone.expect(Puback) == Puback(9, reason)


def test_mqtt5_properties_are_forwarded_and_dropped_for_mqtt3(served: BrokerUnderTest) -> None:
    properties = Properties(
        payload_format=True,
        message_expiry=3_600,
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


def test_payload_of_128_kb_is_accepted(served: BrokerUnderTest) -> None:
    with backend(served) as home, client(served, "lamp") as lamp:
        home.subscribe(UP)
        lamp.publish(UP, b"x" * 128 * 1024)
        assert len(home.expect(Publish).payload) == 128 * 1024


def test_pingreq_gets_pingresp(served: BrokerUnderTest) -> None:
    with client(served, "lamp") as lamp:
        lamp.send(Pingreq(), Pingreq())
        assert [lamp.receive(), lamp.receive()] == [Pingresp(), Pingresp()]
