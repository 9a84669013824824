"""Rules bring messages to functions."""

from __future__ import annotations

import base64
import json
import queue
from typing import TYPE_CHECKING

import pytest

from infra.local.functions import Functions
from infra.local.mqtt.packets import Publish
from infra.local.rules.feeding import RuleFeeder
from infra.local.template import Function, RuleTrigger
from tests import rule_functions
from tests.helpers.wait import CEILING_SECONDS
from tests.mqtt import DOWN, Served, client

if TYPE_CHECKING:
    from infra.local.iot import Embedded


def feed(core: Embedded, sql: str, handler: str) -> RuleFeeder:
    functions = Functions({"inbox": Function("inbox", f"tests.rule_functions.{handler}", CEILING_SECONDS)})
    return RuleFeeder([RuleTrigger(sql, "inbox")], core.broker, functions)


def test_a_rule_brings_messages_to_a_function(core: Embedded, served: Served) -> None:
    sql = "SELECT encode(*, 'base64') AS payload, topic(2) AS device_id, clientid() AS who FROM 'devices/+/up'"
    feeder = feed(core, sql, "record")
    with client(served, "lamp") as lamp:
        payloads = [b'{"type":"hello"}', b"\xff\0", b"", b'{"error":{"message":"a "quote""}}']
        for payload in payloads:
            lamp.publish("devices/lamp/up", payload)
        events = [rule_functions.taken.get(timeout=CEILING_SECONDS) for _ in payloads]
        assert sorted(base64.b64decode(event["payload"]) for event in events) == sorted(payloads)
        assert {(event["device_id"], event["who"]) for event in events} == {("lamp", "lamp")}
        feeder.close()
        lamp.publish("devices/lamp/up", b"too late")
        lamp.settle()
    assert rule_functions.taken.empty()


def test_lifecycle_events_reach_a_function_that_crashed_once(core: Embedded, served: Served) -> None:
    rule_functions.crashes.clear()
    feeder = feed(core, "SELECT * FROM '$aws/events/presence/connected/+' WHERE clientId = 'lamp'", "crash_once")
    with client(served, "fan"), client(served, "lamp"):
        event = rule_functions.taken.get(timeout=CEILING_SECONDS)
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
        assert rule_functions.taken.get(timeout=CEILING_SECONDS) == {"b": 2}
    feeder.close()
