"""IoT SQL: the messages that a rule matches, and the events for its function."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.local.iot.rules.iot_sql import IncomingMessage, UnsupportedRule, parse_rule
from infra.local.template import RuleTrigger, load, parse

UP, CONNECTED, DISCONNECTED = (rule.sql for rule in load().rules)
"""The rules of the template."""


def incoming(payload: bytes, topic: str = "devices/lamp-1/up") -> IncomingMessage:
    return IncomingMessage(topic, payload, 1_700_000_000_000)


def test_payload_is_forwarded_unchanged() -> None:
    rule = parse_rule(UP)
    assert rule.topic_filter == "devices/+/up"
    event = rule.event(incoming(b'{"error": {"message": "a "quote""}}\xff'))
    assert event is not None
    assert base64.b64decode(event["payload"]) == b'{"error": {"message": "a "quote""}}\xff'
    assert (event["device_id"], event["timestamp"]) == ("lamp-1", 1_700_000_000_000)


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
    event = {"clientId": client_id, "eventType": kind, "timestamp": 1}
    assert rule.event(incoming(json.dumps(event).encode())) == (event if taken else None)


@given(st.binary(max_size=200))
def test_rules_survive_any_payload(payload: bytes) -> None:
    event = parse_rule(UP).event(incoming(payload))
    assert event is None or base64.b64decode(event["payload"]) == payload


def test_deeply_nested_payload_is_rejected() -> None:
    assert parse_rule("SELECT * FROM 'a'").event(incoming(b"[" * 100_000)) is None
    assert parse_rule(UP).event(incoming(b'{"payload":' * 100_000)) is not None


@pytest.mark.parametrize(
    ("condition", "matches"),
    [
        ("isUndefined(missing)", True),
        ("isUndefined(data.id)", False),
        ("NOT isUndefined(data.id)", True),
        ("startswith(name, 'la')", True),
        ("NOT startswith(name, 'la')", False),
        ("startswith(missing, 'la')", False),
        ("NOT startswith(missing, 'la')", False),
        ("NOT startswith(data.id, 'la')", False),
    ],
)
def test_conditions(condition: str, *, matches: bool) -> None:
    payload = b'{"name": "lamp", "data": {"id": 1}}'
    assert (parse_rule(f"SELECT * FROM 'a' WHERE {condition}").event(incoming(payload)) is not None) is matches


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
        "SELECT topic(3) AS x FROM 'a/b'",
        "SELECT a FROM 'a'",
        "SELECT * FROM 'a' WHERE a = 1",
        "SELECT * FROM 'a' WHERE isUndefined(a) b",
        "SELECT * FROM 'a' WHERE isUndefined(a) OR isUndefined(b)",
        "SELECT a[0] AS x FROM 'a'",
    ],
)
def test_unsupported_sql_is_an_error(sql: str) -> None:
    with pytest.raises(UnsupportedRule):
        parse_rule(sql)


def test_template_rules_are_parsed() -> None:
    template = parse(
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
        Sql: {json.dumps(UP)}
        Actions: [{{Lambda: {{FunctionArn: !GetAtt Inbox.Arn}}}}]
"""
    )
    assert template.rules == [RuleTrigger(UP, "inbox")]
