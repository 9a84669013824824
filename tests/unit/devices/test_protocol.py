"""Decoding of device messages: the envelope, replies, errors that are not JSON, and meaningless messages."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.local.iot.simulator.garbage import garbage
from shared.devices import protocol
from shared.devices.protocol import (
    DeviceNotification,
    Hello,
    InvalidMessage,
    RpcFailure,
    RpcReply,
    UnreadableReply,
    parse_message,
)
from shared.devices.tool_result import InvalidToolResult, tool_result


def mcp(payload: str) -> bytes:
    """Return a payload in its envelope, concatenated as firmware does."""
    return f'{{"session_id":"","type":"mcp","payload":{payload}}}'.encode("utf-8", "surrogatepass")


def error(message: str, code: str = "") -> bytes:
    """Return an error reply whose message is not escaped."""
    return mcp(f'{{"jsonrpc":"2.0","id":7,"error":{{{code}"message":"{message}"}}}}')


def test_request_matches_the_contract() -> None:
    message = json.loads(protocol.request("s", 3, "tools/call", {"name": "self.x", "arguments": {}}))
    assert message == {
        "session_id": "s",
        "type": "mcp",
        "payload": {
            "jsonrpc": "2.0",
            "method": "tools/call",
            "params": {"name": "self.x", "arguments": {}},
            "id": 3,
        },
    }


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (mcp('{"jsonrpc":"2.0","id":7,"result":{"a":1}}'), RpcReply(7, {"a": 1})),
        (mcp('{"jsonrpc":"2.0","id":7.0,"result":null}'), RpcReply(7, None)),
        (mcp('{"jsonrpc":"2.0","id":7,"error":{"code":-1,"message":"no"}}'), RpcFailure(7, -1, "no")),
        (mcp('{"jsonrpc":"2.0","id":7,"error":{"message":"no"}}'), RpcFailure(7, -32603, "no")),
        (mcp('{"jsonrpc":"2.0","id":7,"error":{"code":true,"message":"no"}}'), RpcFailure(7, -32603, "no")),
        (mcp('{"jsonrpc":"2.0","id":7,"error":"no"}'), RpcFailure(7, -32603, "no")),
        (mcp('{"jsonrpc":"2.0","id":7,"error":{}}'), UnreadableReply(7)),
        (mcp('{"jsonrpc":"2.0","id":7}'), UnreadableReply(7)),
        (mcp('{"jsonrpc":"2.0","id":7,"res'), UnreadableReply(7)),
        (mcp('{"jsonrpc":"2.0","id":7,"result":{"a":"\\ud800"}}'), UnreadableReply(7)),
        (
            mcp('{"jsonrpc":"2.0","method":"notifications/x","params":{"a":1}}'),
            DeviceNotification("notifications/x", {"a": 1}),
        ),
        (mcp('{"jsonrpc":"2.0","method":"own_name"}'), DeviceNotification("own_name", {})),
        (b'{"type":"hello","version":3,"features":{"mcp":true},"transport":"udp"}', Hello("udp", mcp=True)),
        (b'{"type":"hello","features":{},"transport":"websocket"}', Hello("websocket", mcp=False)),
        (mcp('{"jsonrpc":"2.0","id":7,"method":"tools/call"}'), InvalidMessage("unasked")),
        (mcp('{"jsonrpc":"2.0","id":"7","result":{}}'), InvalidMessage("unasked")),
        (mcp('{"jsonrpc":"2.0","id":true,"result":{}}'), InvalidMessage("unasked")),
        (mcp('{"jsonrpc":"2.0","id":7.5,"result":{}}'), InvalidMessage("unasked")),
        (mcp('{"jsonrpc":"2.0","id":4294967303,"result":{}}'), InvalidMessage("unasked")),
        (mcp('{"jsonrpc":"2.0","method":"","params":{}}'), InvalidMessage("malformed")),
        (mcp('{"jsonrpc":"2.0","method":"x","params":7}'), InvalidMessage("malformed")),
        (b'{"type":"mcp","payload":[]}', InvalidMessage("unknown")),
        (b'{"type":"goodbye"}', InvalidMessage("unknown")),
        (b'{"type":"hello"}', InvalidMessage("malformed")),
        (b"[]", InvalidMessage("malformed")),
        (b"", InvalidMessage("malformed")),
        (b"\xff\xfe", InvalidMessage("malformed")),
        (b"[" * 100_000, InvalidMessage("malformed")),
        (b" " * (128 * 1024 + 1), InvalidMessage("oversize")),
    ],
)
def test_parse_device_messages(raw: bytes, message: protocol.DeviceMessage) -> None:
    assert parse_message(raw) == message


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("Unknown tool: self.x", -32601),
        ("Method not implemented: tools/x", -32601),
        ("Missing valid argument: volume", -32602),
        ("Invalid arguments", -32602),
        ("Missing name", -32602),
        ("Value is below minimum allowed: 0", -32602),
        ("Value exceeds maximum allowed: 100", -32602),
        ("Failed to add tool  because of payload size limit", -32603),
        ("the lamp is broken", -32603),
    ],
)
def test_a_missing_code_is_filled_in(said: str, code: int) -> None:
    assert parse_message(error(said)) == RpcFailure(7, code, said)


@given(st.text(st.characters(codec="utf-8"), max_size=200))
def test_unescaped_error_message_is_read_verbatim(said: str) -> None:
    escaped = json.loads(f'"{said}"') if valid(said) else said
    message = parse_message(error(said))
    assert isinstance(message, RpcFailure) or json_says_more(said)
    if isinstance(message, RpcFailure) and not json_says_more(said):
        assert message.message == escaped


def valid(said: str) -> bool:
    """Return True if the text needs no escaping."""
    try:
        json.loads(f'"{said}"')
    except ValueError:
        return False
    return True


def json_says_more(said: str) -> bool:
    """Return True if the message closes its own quotes, so that the rest forms JSON of another meaning."""
    try:
        json.loads(error(said))
    except ValueError:
        return False
    return not valid(said)


@given(st.text(st.sampled_from('"\n\\{}:,id70 message error'), max_size=80))
def test_error_reply_keeps_its_request_id(said: str) -> None:
    message = parse_message(error(said))
    assert isinstance(message, RpcFailure | UnreadableReply)
    assert message.id == 7


@given(st.binary(max_size=300))
def test_parser_survives_any_input(raw: bytes) -> None:
    parse_message(raw)
    parse_message(mcp(raw.decode("latin-1")))


def test_garbage_is_junk_or_an_unmatched_reply() -> None:
    assert {type(parse_message(garbage())) for _ in range(500)} <= {InvalidMessage, RpcReply, UnreadableReply}


def image(content: Any) -> list[dict[str, Any]]:
    return tool_result({"content": [content], "isError": False}).content


def test_images_are_unwrapped() -> None:
    plain = {"type": "image", "data": "aGk=", "mimeType": "image/jpeg"}
    assert image({"type": "image", "image": json.dumps(plain)}) == [plain]
    assert image(plain) == [plain]


@pytest.mark.parametrize(
    "result",
    [
        None,
        [],
        {},
        {"content": "text"},
        {"content": [7]},
        {"content": [{"type": 7}]},
        {"content": [{"type": "text"}]},
        {"content": [{"type": "image", "image": "{"}]},
        {"content": [{"type": "image", "image": "[]"}]},
        {"content": [{"type": "image", "image": "[" * 100_000}]},
        {"content": [{"type": "image", "data": 7, "mimeType": "x"}]},
    ],
)
def test_invalid_results(result: Any) -> None:
    with pytest.raises(InvalidToolResult):
        tool_result(result)
