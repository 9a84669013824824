"""IoT rules: which messages they take, and what the function is sent."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.local.rules.iot_sql import IncomingMessage, UnsupportedRule, parse_rule
from infra.local.template import RuleTrigger, load

if TYPE_CHECKING:
    from pathlib import Path

INBOX = (
    "SELECT encode(*, 'base64') AS payload, topic(2) AS device_id, timestamp() AS received_at FROM 'devices/+/up' "
    "WHERE isUndefined(payload.id) OR NOT (type = 'mcp' AND isUndefined(payload.method))"
)


UP, CONNECTED, DISCONNECTED = (rule.sql for rule in load().rules)
"""The template's own."""


def incoming(payload: bytes, topic: str = "devices/lamp-1/up") -> IncomingMessage:
    return IncomingMessage(topic, payload, "lamp-1", 1_700_000_000_000)


def test_payload_is_forwarded_unchanged() -> None:
    rule = parse_rule(INBOX)
    assert rule.topic_filter == "devices/+/up"
    event = rule.event(incoming(b'{"error": {"message": "a "quote""}}\xff'))
    assert event is not None
    assert base64.b64decode(event["payload"]) == b'{"error": {"message": "a "quote""}}\xff'
    assert (event["device_id"], event["received_at"]) == ("lamp-1", 1_700_000_000_000)


@pytest.mark.parametrize(
    ("message", "taken"),
    [
        ({"type": "hello", "version": 3}, True),
        ({"type": "mcp", "payload": {"jsonrpc": "2.0", "method": "notifications/x"}}, True),
        ({"type": "mcp", "payload": {"jsonrpc": "2.0", "id": 1, "result": {}}}, False),
        ({"type": "mcp", "payload": {"jsonrpc": "2.0", "id": 1, "method": "x"}}, True),
        ({"type": "goodbye", "payload": {"id": 1}}, True),
        ([1, 2], True),
    ],
)
def test_condition_selects_replies(message: object, *, taken: bool) -> None:
    assert (parse_rule(INBOX).event(incoming(json.dumps(message).encode())) is not None) is taken


@pytest.mark.parametrize(
    ("payload", "taken"),
    [
        (b'{"type": "hello", "version": 3}', True),
        (b'{"type": "mcp", "payload": {"jsonrpc": "2.0", "method": "notifications/x"}}', True),
        (b'{"type": "mcp", "payload": {"jsonrpc": "2.0", "id": 1, "result": {}}}', False),
        (b'{"type": "mcp", "payload": {"jsonrpc": "2.0", "id": 1, "error": {"message": "a "quote""}}}', True),
        (b"\xff", True),
    ],
)
def test_inbox_rule_excludes_replies(payload: bytes, *, taken: bool) -> None:
    event = parse_rule(UP).event(incoming(payload))
    assert (event is not None) is taken
    if event:
        assert (event["device_id"], base64.b64decode(event["payload"])) == ("lamp-1", payload)


@pytest.mark.parametrize(("sql", "kind"), [(CONNECTED, "connected"), (DISCONNECTED, "disconnected")])
@pytest.mark.parametrize(("client_id", "taken"), [("lamp", True), ("kho-lamp", True), ("kho-backend-1", False)])
def test_backend_connections_are_excluded(sql: str, kind: str, client_id: str, *, taken: bool) -> None:
    rule = parse_rule(sql)
    assert rule.topic_filter == f"$aws/events/presence/{kind}/+"
    told = {"clientId": client_id, "eventType": kind, "timestamp": 1}
    assert rule.event(incoming(json.dumps(told).encode())) == (told if taken else None)


@given(st.binary(max_size=200))
def test_rules_survive_any_payload(payload: bytes) -> None:
    event = parse_rule(INBOX).event(incoming(payload))
    assert event is None or base64.b64decode(event["payload"]) == payload


def test_deeply_nested_payload_is_rejected() -> None:
    assert parse_rule("SELECT * FROM 'a'").event(incoming(b"[" * 100_000)) is None
    assert parse_rule(INBOX).event(incoming(b'{"payload":' * 100_000)) is not None


def test_fields_and_functions() -> None:
    sql = (
        "SELECT *, a.b, c AS d, missing, clientid() AS who, topic() AS topic, 'x''y' AS text, 1.5 AS n FROM 'devices/#'"
    )
    event = parse_rule(sql).event(incoming(b'{"a": {"b": 1}, "c": null}'))
    assert event == {
        "a": {"b": 1},
        "c": None,
        "b": 1,
        "d": None,
        "who": "lamp-1",
        "topic": "devices/lamp-1/up",
        "text": "x'y",
        "n": 1.5,
    }


@pytest.mark.parametrize(
    ("condition", "met"),
    [
        ("eventType = 'connected'", True),
        ("eventType <> 'connected'", False),
        ("missing = 'x'", False),
        ("missing <> 'x'", False),
        ("NOT missing = 'x'", False),
        ("isNull(nothing)", True),
        ("one = 1 AND yes = true", True),
        ("yes = 1", False),
        ("one = 2 OR (one = 1 AND NOT yes = false)", True),
        ("yes", True),
    ],
)
def test_undefined_does_not_match(condition: str, *, met: bool) -> None:
    payload = b'{"eventType": "connected", "nothing": null, "one": 1, "yes": true}'
    assert (parse_rule(f"SELECT * FROM 'a' WHERE {condition}").event(incoming(payload)) is not None) is met


@pytest.mark.parametrize(
    "sql",
    [
        "",
        "SELECT",
        "SELECT * FROM devices",
        "SELECT * FROM 'a' WHERE",
        "SELECT topic(2) FROM 'a'",
        "SELECT encode(*, 'hex') AS x FROM 'a'",
        "SELECT aws_lambda('x', *) AS x FROM 'a'",
        "SELECT * FROM 'a' WHERE a = 1 b",
        "SELECT a[0] AS x FROM 'a'",
    ],
)
def test_unsupported_sql_is_an_error(sql: str) -> None:
    with pytest.raises(UnsupportedRule):
        parse_rule(sql)


def test_template_rules_are_parsed(tmp_path: Path) -> None:
    file = tmp_path / "template.yaml"
    file.write_text(
        f"""
Parameters: {{}}
Globals: {{Function: {{Timeout: 10, Environment: {{Variables: {{}}}}}}}}
Resources:
  Inbox:
    Type: AWS::Serverless::Function
    Properties:
      FunctionName: !Sub ${{AWS::StackName}}-inbox
      Handler: workers.device_inbox.handler
  Up:
    Type: AWS::IoT::TopicRule
    Properties:
      TopicRulePayload:
        AwsIotSqlVersion: "2016-03-23"
        Sql: {json.dumps(INBOX)}
        Actions: [{{Lambda: {{FunctionArn: !GetAtt Inbox.Arn}}}}]
"""
    )
    assert load(file).rules == [RuleTrigger(INBOX, "inbox")]
