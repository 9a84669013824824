"""What devices send, read: the envelope, replies, errors that are no JSON, and what means nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.local.simulator.garbage import garbage
from shared.devices import protocol
from shared.devices.content import NoResult, tool_result
from shared.devices.protocol import Failure, Hello, Junk, Notification, Reply, Unreadable, read


def mcp(payload: str) -> bytes:
    """A payload in its envelope, as firmware glues it together."""
    return f'{{"session_id":"","type":"mcp","payload":{payload}}}'.encode("utf-8", "surrogatepass")


def error(message: str, code: str = "") -> bytes:
    """An error reply whose message is not escaped."""
    return mcp(f'{{"jsonrpc":"2.0","id":7,"error":{{{code}"message":"{message}"}}}}')


def test_a_request_is_the_seeds() -> None:
    sent = json.loads(protocol.request("s", 3, "tools/call", {"name": "self.x", "arguments": {}}))
    assert sent == {
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
        (mcp('{"jsonrpc":"2.0","id":7,"result":{"a":1}}'), Reply(7, {"a": 1})),
        (mcp('{"jsonrpc":"2.0","id":7.0,"result":null}'), Reply(7, None)),
        (mcp('{"jsonrpc":"2.0","id":7,"error":{"code":-1,"message":"no"}}'), Failure(7, -1, "no")),
        (mcp('{"jsonrpc":"2.0","id":7,"error":{"message":"no"}}'), Failure(7, -32603, "no")),
        (mcp('{"jsonrpc":"2.0","id":7,"error":{"code":true,"message":"no"}}'), Failure(7, -32603, "no")),
        (mcp('{"jsonrpc":"2.0","id":7,"error":"no"}'), Failure(7, -32603, "no")),
        (mcp('{"jsonrpc":"2.0","id":7,"error":{}}'), Unreadable(7)),
        (mcp('{"jsonrpc":"2.0","id":7}'), Unreadable(7)),
        (mcp('{"jsonrpc":"2.0","id":7,"res'), Unreadable(7)),
        (mcp('{"jsonrpc":"2.0","id":7,"result":{"a":"\\ud800"}}'), Unreadable(7)),
        (
            mcp('{"jsonrpc":"2.0","method":"notifications/x","params":{"a":1}}'),
            Notification("notifications/x", {"a": 1}),
        ),
        (mcp('{"jsonrpc":"2.0","method":"own_name"}'), Notification("own_name", {})),
        (b'{"type":"hello","version":3,"features":{"mcp":true},"transport":"udp"}', Hello("udp", mcp=True)),
        (b'{"type":"hello","features":{},"transport":"websocket"}', Hello("websocket", mcp=False)),
        (mcp('{"jsonrpc":"2.0","id":7,"method":"tools/call"}'), Junk("unasked")),
        (mcp('{"jsonrpc":"2.0","id":"7","result":{}}'), Junk("unasked")),
        (mcp('{"jsonrpc":"2.0","id":true,"result":{}}'), Junk("unasked")),
        (mcp('{"jsonrpc":"2.0","id":7.5,"result":{}}'), Junk("unasked")),
        (mcp('{"jsonrpc":"2.0","id":4294967303,"result":{}}'), Junk("unasked")),
        (mcp('{"jsonrpc":"2.0","method":"","params":{}}'), Junk("malformed")),
        (mcp('{"jsonrpc":"2.0","method":"x","params":7}'), Junk("malformed")),
        (b'{"type":"mcp","payload":[]}', Junk("unknown")),
        (b'{"type":"goodbye"}', Junk("unknown")),
        (b'{"type":"hello"}', Junk("malformed")),
        (b"[]", Junk("malformed")),
        (b"", Junk("malformed")),
        (b"\xff\xfe", Junk("malformed")),
        (b"[" * 100_000, Junk("malformed")),
        (b" " * (128 * 1024 + 1), Junk("oversize")),
    ],
)
def test_what_is_read(raw: bytes, message: protocol.Message) -> None:
    assert read(raw) == message


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
    assert read(error(said)) == Failure(7, code, said)


@given(st.text(st.characters(codec="utf-8"), max_size=200))
def test_a_message_that_is_not_escaped_is_read_as_it_is(said: str) -> None:
    escaped = json.loads(f'"{said}"') if valid(said) else said
    message = read(error(said))
    assert isinstance(message, Failure) or json_says_more(said)
    if isinstance(message, Failure) and not json_says_more(said):
        assert message.message == escaped


def valid(said: str) -> bool:
    """Whether it needs no escaping."""
    try:
        json.loads(f'"{said}"')
    except ValueError:
        return False
    return True


def json_says_more(said: str) -> bool:
    """Whether the message closes its own quotes, so that what follows makes JSON of another meaning."""
    try:
        json.loads(error(said))
    except ValueError:
        return False
    return not valid(said)


@given(st.text(st.sampled_from('"\n\\{}:,id70 message error'), max_size=80))
def test_whatever_an_error_says_it_stays_the_reply_to_the_same_call(said: str) -> None:
    message = read(error(said))
    assert isinstance(message, Failure | Unreadable)
    assert message.id == 7


@given(st.binary(max_size=300))
def test_nothing_that_comes_is_too_strange(raw: bytes) -> None:
    read(raw)
    read(mcp(raw.decode("latin-1")))


def test_garbage_is_junk_or_a_reply_that_nobody_waits_for() -> None:
    assert {type(read(garbage())) for _ in range(500)} <= {Junk, Reply, Unreadable}


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
def test_what_is_no_result(result: Any) -> None:
    with pytest.raises(NoResult):
        tool_result(result)
