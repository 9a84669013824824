"""Rules invoke functions with messages."""

from __future__ import annotations

import base64
import json
import queue
from typing import TYPE_CHECKING

import pytest

from infra.local.functions import Functions
from infra.local.iot.mqtt.packets import Publish
from infra.local.iot.rules import dispatcher
from infra.local.iot.rules.dispatcher import RuleDispatcher
from infra.local.template import FunctionDefinition, RuleTrigger
from tests.helpers import rule_functions
from tests.helpers.mqtt_client import DOWN, EmbeddedBroker, client, send_direct_message
from tests.helpers.wait import CEILING_SECONDS

if TYPE_CHECKING:
    from infra.local.iot.iot_core import EmbeddedIotCore


def feed(core: EmbeddedIotCore, sql: str, handler: str) -> RuleDispatcher:
    functions = Functions(
        {"inbox": FunctionDefinition("inbox", f"tests.helpers.rule_functions.{handler}", CEILING_SECONDS)}
    )
    return RuleDispatcher([RuleTrigger(sql, "inbox")], core.broker, functions)


def test_rule_invokes_a_function(core: EmbeddedIotCore, served: EmbeddedBroker) -> None:
    sql = "SELECT encode(*, 'base64') AS payload, topic(2) AS device_id FROM 'devices/+/up'"
    feeder = feed(core, sql, "record")
    with client(served, "lamp") as lamp:
        payloads = [b'{"type":"hello"}', b"\xff\0", b"", b'{"error":{"message":"a "quote""}}']
        for payload in payloads:
            lamp.publish("devices/lamp/up", payload)
        events = [rule_functions.taken.get(timeout=CEILING_SECONDS) for _ in payloads]
        assert sorted(base64.b64decode(event["payload"]) for event in events) == sorted(payloads)
        assert {event["device_id"] for event in events} == {"lamp"}
        feeder.close()
        lamp.publish("devices/lamp/up", b"too late")
        lamp.settle()
    assert rule_functions.taken.empty()


def test_lifecycle_event_is_retried_after_a_crash(core: EmbeddedIotCore, served: EmbeddedBroker) -> None:
    rule_functions.crashes.clear()
    feeder = feed(
        core, "SELECT * FROM '$aws/events/presence/connected/+' WHERE startswith(clientId, 'lamp')", "crash_once"
    )
    with client(served, "fan"), client(served, "lamp"):
        event = rule_functions.taken.get(timeout=CEILING_SECONDS)
        assert (event["clientId"], event["eventType"]) == ("lamp", "connected")
    feeder.close()
    assert len(rule_functions.crashes) == 2
    with pytest.raises(queue.Empty):
        rule_functions.taken.get_nowait()


def test_direct_messages_do_not_trigger_rules(core: EmbeddedIotCore, served: EmbeddedBroker) -> None:
    feeder = feed(core, "SELECT * FROM 'devices/#'", "record")
    with client(served, "lamp") as lamp:
        send_direct_message(core.broker, "lamp", DOWN, b'{"a": 1}')
        assert lamp.expect(Publish).payload == b'{"a": 1}'
        lamp.publish("devices/lamp/up", json.dumps({"b": 2}).encode())
        assert rule_functions.taken.get(timeout=CEILING_SECONDS) == {"b": 2}
    feeder.close()


def test_messages_keep_their_order_while_the_clock_goes_back_a_little(
    core: EmbeddedIotCore, served: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step of more than a minute is followed, so that the times are right again."""
    times = iter([500_000, 499_000, 450_000, 501_000, 100_000])
    monkeypatch.setattr(dispatcher, "now_ms", lambda: next(times))
    feeder = feed(core, "SELECT encode(*, 'base64') AS payload, timestamp() AS at FROM 'devices/+/up'", "record")
    with client(served, "lamp") as lamp:
        for number in range(5):
            lamp.publish("devices/lamp/up", str(number).encode())
        events = [rule_functions.taken.get(timeout=CEILING_SECONDS) for _ in range(5)]
    feeder.close()
    stamps = {int(base64.b64decode(event["payload"])): (event["at"], event["sequence"]) for event in events}
    assert [stamps[number] for number in range(5)] == [
        (500_000, 0),
        (500_000, 1),
        (500_000, 2),
        (501_000, 0),
        (100_000, 0),
    ]
