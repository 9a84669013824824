"""The dialogue of backend and device over mosquitto, with publishing alone, equals that over the embedded broker."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from infra.local.iot.iot_core import run_embedded, use_external
from infra.local.iot.simulator.quirks import Quirk
from infra.local.sockets import listen
from infra.local.template import load
from shared.devices.registry import registry
from tests.helpers.device_backend import DeviceBackend, device_backend_at, reset_settings
from tests.helpers.mqtt_client import PATIENT
from tests.helpers.wait import until
from workers import device_inbox

if TYPE_CHECKING:
    from collections.abc import Iterator

INBOX = [rule for rule in load().rules if rule.function == "workers-device_inbox"]
"""mosquitto has no lifecycle events; to compare like with like, those of either broker are ignored."""
CHANGED = {"newState": "idle", "oldState": "connecting"}


@pytest.fixture
def audio(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Configure an audio server, without which a device pauses after its hello."""
    monkeypatch.setenv("KHO_AUDIO_SERVER", "audio.example")
    monkeypatch.setattr(device_inbox, "_MIN_HELLO_INTERVAL_SECONDS", -1.0)  # each hello begins a session
    reset_settings()
    yield
    monkeypatch.undo()
    reset_settings()


def conversation(home: DeviceBackend) -> dict[str, list[Any]]:
    """Return the messages of hello, initialize, the tool list, a call, an error, a notification, and of a reconnect.

    Ids, sessions and keys are numbered in order of appearance.
    """
    with home.device(Quirk.SUBSCRIBES, Quirk.HELLO, plain=True, start=False) as one:
        registry().register("local", one.id, downlink="publish")
        one.fleet.start()
        until(lambda: one.sessions.read().session)
        assert len(one.tools()) == 51
        assert one.text("self.test.echo", text='ẩm "thực"\n') == 'ẩm "thực"\n'
        assert one.call_error("self.audio_speaker.set_volume", volume=400).code == "INVALID_PARAMS"
        one.simulated.firmware.tools = [each for each in one.simulated.firmware.tools if each.name != "self.test.echo"]
        assert one.call_error("self.test.echo", text="x").code == "DEVICE_ERROR"
        one.fleet.do(lambda: one.simulated.notify("notifications/state_changed", **CHANGED))
        first = one.sessions.read().session
        one.drop()
        until(lambda: one.sessions.read().session != first)
        assert one.call("self.audio_speaker.set_volume", volume=50).isError is False
        until(lambda: len(one.up) >= len(one.down))
        return {"down": _anonymous(one.down), "up": _anonymous([json.loads(raw) for raw in one.up])}


def _anonymous(messages: list[Any]) -> list[Any]:
    """Return messages with random values replaced by numbers in order of appearance."""
    seen: dict[tuple[str, Any], int] = {}

    def numbered(name: str, value: Any) -> Any:
        if isinstance(value, dict):
            return {each: numbered(each, inner) for each, inner in value.items()}
        if name in ("id", "session_id", "key", "nonce") and value:
            return seen.setdefault((name, value), len(seen))
        return value

    return [numbered("", message) for message in messages]


def test_transcript_over_mosquitto_equals_the_embedded_brokers(port: int, audio: None) -> None:
    with use_external(f"mqtt://127.0.0.1:{port}", "") as core, device_backend_at(core, INBOX) as home:
        over_mosquitto = conversation(home)
    with (
        run_embedded(listen("127.0.0.1", 0), PATIENT, authorizing=False) as here,
        device_backend_at(here, INBOX) as home,
    ):
        assert over_mosquitto == conversation(home)
    methods = [each.get("payload", each).get("method", each["type"]) for each in over_mosquitto["down"]]
    assert methods[:7] == ["hello", "initialize", *["tools/list"] * 5]
    assert methods.count("hello") == methods.count("initialize") == 2
    assert methods.count("tools/call") == 3


def test_device_uses_only_its_own_topics_over_mosquitto(port: int, audio: None) -> None:
    with use_external(f"mqtt://127.0.0.1:{port}", "") as core, device_backend_at(core, INBOX) as home:
        topics: list[str] = []
        core.broker.listen("devices/+/up", lambda message: topics.append(message.topic))
        with home.device(Quirk.SUBSCRIBES, Quirk.HELLO, Quirk.TRESPASSES) as one:
            until(lambda: f"devices/{one.id}/up" in topics and one.known)
            assert one.text("self.test.echo", text="x") == "x"
            assert set(topics) == {f"devices/{one.id}/up"}
