"""Device commands: register, list, call, watch and revoke, next to a server that requires keys."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import threading
from typing import TYPE_CHECKING, Any

import pytest

from infra.local.iot.simulator.device import DeviceModel
from infra.local.iot.simulator.firmware import parse_endpoint
from infra.local.iot.simulator.fleet import Fleet
from infra.local.iot.simulator.quirks import FIRMWARE, Quirk
from tests.helpers.api_client import make_key, run_kho
from tests.helpers.kho_server import KhoServer
from tests.helpers.program import KHO, start
from tests.helpers.wait import CEILING_SECONDS, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def run(*arguments: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return run_kho("devices", *arguments, environment=environment)


def kho(*arguments: str) -> str:
    """Run a command that succeeds, and return its output."""
    done = run(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def refused(*arguments: str, environment: dict[str, str] | None = None) -> str:
    """Run a command that fails, and return its error message."""
    done = run(*arguments, environment=environment)
    assert done.returncode == 1, done
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KhoServer]:
    with KhoServer(tmp_path_factory.mktemp("devices") / "data", "--auth", "required") as server:
        yield server


def connected(settings: dict[str, Any], quirks: frozenset[Quirk] = FIRMWARE) -> Fleet:
    """Return a device with the settings that its registration printed."""
    model = DeviceModel(quirks, password=settings["password"].encode())
    host, port = parse_endpoint(settings["endpoint"])
    return Fleet(host, port, [settings["client_id"]], model)


def test_registered_device_connects_is_called_and_revoked(guarded: KhoServer) -> None:
    here = ("--data", str(guarded.data), "--tenant", "acme")
    registration = json.loads(kho("register", "lamp:1", "--name", "Kitchen", "--json", *here))
    assert (
        registration["device"].items()
        >= {"id": "lamp:1", "tenant_id": "acme", "name": "Kitchen", "downlink": "direct"}.items()
    )
    assert registration["mqtt"]["publish_topic"] == "devices/lamp:1/up"
    with connected(registration["mqtt"] | {"password": "guessed"}) as stranger:
        stranger.start()
        assert stranger.connected == 0
    with connected(registration["mqtt"]) as fleet:
        fleet.start()
        until(lambda: fleet.connected == 1)
        assert kho("call", "lamp:1", "self.audio_speaker.set_volume", "volume=40", *here) == "true\n"
        result = json.loads(kho("call", "lamp:1", "self.camera.take_photo", "question=what?", "--json", *here))
        assert result["content"][0]["type"] == "image"
        [output] = json.loads(kho("list", "--json", *here))["devices"]
        assert output["connected"] is True
        assert output["board"] == "simulated-esp32"
        assert output["last_answered_at"]
        assert "volume: 400" in refused("call", "lamp:1", "self.audio_speaker.set_volume", "volume=400", *here)
        [device] = fleet.devices
        assert [tool for tool, _ in device.firmware.runs] == [
            "self.audio_speaker.set_volume",
            "self.camera.take_photo",
        ]
        assert "is revoked since" in kho("revoke", "lamp:1", "--data", str(guarded.data))
        until(lambda: not fleet.connected)
    assert kho("list", *here).count("\n") == 1
    with connected(registration["mqtt"]) as again:
        again.start()
        assert again.connected == 0


def test_watch_prints_device_events_live(guarded: KhoServer) -> None:
    here = ("--data", str(guarded.data), "--tenant", "acme")
    settings = json.loads(kho("register", "teller", "--json", *here))["mqtt"]
    pipe = subprocess.PIPE
    watching = start(KHO, "devices", "watch", "teller", "--json", *here, stdout=pipe, stderr=pipe)
    assert watching.stdout
    assert watching.stderr
    assert watching.stderr.readline() == "Press Ctrl-C to stop.\n"
    giving_up = threading.Timer(CEILING_SECONDS, watching.kill)
    giving_up.start()
    messages: list[dict[str, Any]] = []

    def follow(*kinds: str) -> None:
        while not {each["kind"] for each in messages}.issuperset(kinds):
            messages.append(json.loads(watching.stdout.readline()))  # type: ignore[union-attr]

    with connected(settings, FIRMWARE | {Quirk.NOTIFIES}) as fleet:
        fleet.start()
        follow("connected", "session", "notification")
    follow("disconnected")
    watching.send_signal(signal.SIGINT)
    watching.communicate(timeout=CEILING_SECONDS)
    giving_up.cancel()
    assert watching.returncode == 0
    assert {each["device_id"] for each in messages} == {"teller"}
    by_kind = {each["kind"]: each["told"] for each in messages}
    assert by_kind["session"]["board"] == "simulated-esp32"
    assert by_kind["notification"]["method"] == "notifications/state_changed"
    notified = [each["at"] for each in messages if each["kind"] == "notification"]
    assert len(set(notified)) == len(notified)


def test_deployed_endpoint_is_called_with_an_api_key(guarded: KhoServer) -> None:
    key = {"KHO_KEY": make_key(guarded.data, "far", "operator")["key"]}
    there = ("--endpoint", guarded.address)
    settings = json.loads(kho("register", "far-lamp", "--json", "--data", str(guarded.data), "--tenant", "far"))["mqtt"]
    with connected(settings) as fleet:
        fleet.start()
        listed = run("list", "--json", *there, environment=key)
        assert [each["device_id"] for each in json.loads(listed.stdout)["devices"]] == ["far-lamp"]
        assert (
            run("call", "far-lamp", "self.audio_speaker.set_volume", "volume=1", *there, environment=key).stdout
            == "true\n"
        )
    assert "rejected the key" in refused("list", *there, environment={"KHO_KEY": "kho_no"})


def test_devices_are_registered_without_a_running_server(tmp_path: Path) -> None:
    here = ("--data", str(tmp_path / "data"))
    output = kho("register", "lamp", "--subscribes", *here)
    assert re.search(r"subscribe_topic +devices/lamp/down", output)
    assert re.search(r"password +[0-9a-f]{64}\n", output)
    assert re.search(r"lamp +lamp +publish +no", kho("list", *here))
    assert "registered already" in refused("register", "lamp", *here)
    assert "no device is connected" in refused("watch", *here)
    kho("revoke", "lamp", *here)
