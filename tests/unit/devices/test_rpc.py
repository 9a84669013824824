"""Requests to devices: each gets its own reply, and other messages are counted by kind."""

from __future__ import annotations

import json
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from shared.devices.protocol import request
from shared.devices.registry import RegisteredDevice
from shared.devices.rpc import RpcClient
from shared.rpc.errors import KhoError, TooLarge, Unavailable
from shared.rpc.observation import observe
from tests.helpers.limits import LONG_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DEVICE = RegisteredDevice("board", "tenant", "", "direct", "")


def reply(payload: dict[str, Any]) -> bytes:
    return json.dumps({"session_id": "", "type": "mcp", "payload": {"jsonrpc": "2.0"} | payload}).encode()


class Answering:
    """A transport to a device that answers each request at once."""

    on_message: Callable[[str, bytes], None]

    def __init__(self, *answers: Callable[[int], bytes], sender: str = DEVICE.id) -> None:
        self.answers = answers
        self.sender = sender
        self.sent: list[int] = []

    @contextmanager
    def subscribed(self, _device_id: str, _deadline: float) -> Iterator[None]:
        yield

    def send(self, _device: RegisteredDevice, message: bytes) -> None:
        self.sent.append(json.loads(message)["payload"]["id"])
        for answer in self.answers:
            self.on_message(self.sender, answer(self.sent[-1]))


def result(number: int) -> bytes:
    return reply({"id": number, "result": {"of": "this request"}})


def ask(transport: Answering, **params: Any) -> tuple[RpcClient, Any, dict[str, int]]:
    """Send a request whose deadline has come. Return the client, its result or error, and what was counted."""
    client = RpcClient(transport, lambda: 0.0)
    with observe("device-server/tools/call", "0123456789abcdef") as observation:
        try:
            outcome = client.request(DEVICE, "session", "tools/call", params, deadline=0.0)
        except (KhoError, TimeoutError) as error:
            outcome = error
    return client, outcome, dict(observation.counts)


def test_reply_is_the_result_of_its_request() -> None:
    _, outcome, counts = ask(Answering(result))
    assert (outcome, counts) == ({"of": "this request"}, {})


def test_reply_to_another_request_is_none() -> None:
    _, outcome, counts = ask(Answering(lambda number: result(number + 1)))
    assert isinstance(outcome, TimeoutError)
    assert counts == {"dropped_unasked": 1}


def test_reply_of_another_device_is_none() -> None:
    _, outcome, counts = ask(Answering(result, sender="another"))
    assert isinstance(outcome, TimeoutError)
    assert counts == {"dropped_unasked": 1}


def test_repeated_reply_is_counted_as_such() -> None:
    _, outcome, counts = ask(Answering(result, result))
    assert (outcome, counts) == ({"of": "this request"}, {"dropped_repeated": 1})


def test_late_reply_is_counted_as_such() -> None:
    transport = Answering()
    client, outcome, _ = ask(transport)
    assert isinstance(outcome, TimeoutError)
    transport.on_message(DEVICE.id, result(transport.sent[0]))
    transport.on_message(DEVICE.id, result(transport.sent[0]))
    assert client.dropped.counts == {"late": 2}


def test_oversized_message_is_counted_and_no_reply() -> None:
    _, outcome, counts = ask(Answering(lambda number: reply({"id": number, "result": "x" * 128 * 1024})))
    assert isinstance(outcome, TimeoutError)
    assert counts == {"dropped_oversize": 1}


def test_error_of_the_device_is_raised_with_its_code() -> None:
    _, outcome, _ = ask(Answering(lambda number: reply({"id": number, "error": {"code": -32601, "message": "no"}})))
    assert isinstance(outcome, KhoError)
    assert (outcome.code, outcome.details["code"]) == ("DEVICE_ERROR", -32601)


def test_unreadable_reply_ends_the_request() -> None:
    _, outcome, _ = ask(Answering(lambda number: reply({"id": number})))
    assert isinstance(outcome, KhoError)
    assert not isinstance(outcome, TimeoutError)


def test_request_of_more_than_128_kib_is_refused_unsent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.devices.rpc.secrets", SimpleNamespace(randbelow=lambda _: 0))
    transport = Answering(result)
    empty = len(request("session", 1, "tools/call", {"text": ""}))
    _, outcome, _ = ask(transport, text="x" * (128 * 1024 - empty))
    assert outcome == {"of": "this request"}
    assert transport.sent == [1], "numbers begin at 1"
    _, outcome, _ = ask(transport, text="x" * (128 * 1024 - empty + 1))
    assert isinstance(outcome, TooLarge)


def test_watcher_ends_a_request_that_can_have_no_reply(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.devices.rpc._WATCH_SECONDS", 0.01)

    def watch() -> None:
        raise Unavailable("The connection is lost.")

    with pytest.raises(Unavailable, match="The connection is lost"):
        RpcClient(Answering(), lambda: 0.0).request(
            DEVICE, "session", "tools/call", {}, deadline=LONG_SECONDS, watch=watch
        )
