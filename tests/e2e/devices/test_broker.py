"""Devices at a running server: the broker, its listeners, and the simulated fleet."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from typing import TYPE_CHECKING

from infra.local.iot.simulator.device import DeviceModel
from infra.local.iot.simulator.fleet import Fleet
from infra.local.iot.simulator.quirks import FIRMWARE, Quirk
from tests.helpers.api_client import run_kho
from tests.helpers.kho_server import KhoServer
from tests.helpers.mqtt_client import TOKEN, RawMqttClient, running_broker
from tests.helpers.program import KHO, start
from tests.helpers.wait import CEILING_SECONDS, until

if TYPE_CHECKING:
    from pathlib import Path


def mqtt_port(server: KhoServer) -> int:
    match = re.search(r"Devices connect to mqtt://127\.0\.0\.1:(\d+)", server.printed())
    assert match
    return int(match[1])


def test_fleet_discovers_the_server_by_data_folder(server: KhoServer) -> None:
    simulate = ["devices", "simulate", "-n", "20", "--data", str(server.data), "--quirk", "hello"]
    fleet = start(KHO, *simulate, stdout=subprocess.PIPE)
    try:
        assert fleet.stdout
        output, first = fleet.stdout, fleet.stdout.readline()
        assert first.endswith(f" of 20 devices are connected to 127.0.0.1, port {mqtt_port(server)}.\n")
        # A device whose first connection takes too long connects again by itself.
        until(lambda: first.startswith("20 ") or output.readline().startswith("20 connected"))
    finally:
        fleet.send_signal(signal.SIGINT)
    rest, _ = fleet.communicate(timeout=CEILING_SECONDS)
    assert fleet.returncode == 0
    assert "20 connected" in rest


def test_open_server_accepts_any_device_on_its_own_topics_only(server: KhoServer) -> None:
    with RawMqttClient(mqtt_port(server)) as lamp:
        assert lamp.connect("any-name").reason == 0
        assert lamp.subscribe("devices/any-name/down", "devices/+/down") == [0, 0x80]
        lamp.publish("devices/another/up", b"{}")
        assert lamp.receive() is None


def test_server_with_keys_rejects_unknown_devices(tmp_path: Path) -> None:
    with KhoServer(tmp_path / "data", "--auth", "required") as server, RawMqttClient(mqtt_port(server)) as lamp:
        assert lamp.connect("any-name").reason == 5
        assert lamp.receive() is None


def test_devices_are_notified_of_server_shutdown(tmp_path: Path) -> None:
    with KhoServer(tmp_path / "data") as server, RawMqttClient(mqtt_port(server)) as lamp:
        assert lamp.connect("lamp").reason == 0
        assert server.interrupt() == 0
        while lamp.receive() is not None:  # the broker may have sent an initialize request
            continue
        assert "Traceback" not in server.printed()


def test_external_broker_replaces_the_embedded_one(tmp_path: Path) -> None:
    audio = {"KHO_AUDIO_SERVER": "audio.example"}
    with running_broker() as elsewhere:
        options = ("--mqtt-url", f"mqtt://127.0.0.1:{elsewhere.port}", "--mqtt-token", TOKEN)
        model = DeviceModel(FIRMWARE | {Quirk.SUBSCRIBES, Quirk.HELLO})
        with (
            KhoServer(tmp_path / "data", *options, environment=audio) as server,
            Fleet("127.0.0.1", elsewhere.port, ["far"], model) as fleet,
        ):
            assert mqtt_port(server) == elsewhere.port
            fleet.start()
            until(lambda: server.call("device-server/devices/list")["devices"])
            call = {"device_id": "far", "name": "self.audio_speaker.set_volume", "arguments": {"volume": 40}}
            assert server.call("device-server/tools/call", **call)["content"] == [{"type": "text", "text": "true"}]


def test_vision_token_is_sent_to_devices_only(tmp_path: Path) -> None:
    vision = {"url": "https://vision.example/explain", "token": "kohlrabi"}
    settings = {"KHO_VISION_URL": vision["url"], "KHO_VISION_TOKEN": vision["token"], "POWERTOOLS_LOG_LEVEL": "DEBUG"}
    payloads: list[bytes] = []
    with (
        KhoServer(tmp_path / "data", environment=settings) as server,
        Fleet("127.0.0.1", server.mqtt_port, ["camera"], DeviceModel(FIRMWARE)) as fleet,
    ):
        (camera,) = fleet.devices
        take = camera._on_message

        def overhear(topic: str, payload: bytes) -> None:
            payloads.append(payload)
            take(topic, payload)

        camera._on_message = overhear  # type: ignore[method-assign,assignment]  # the device still receives the message
        fleet.start()
        call = {"device_id": "camera", "name": "self.audio_speaker.set_volume"}
        until(lambda: payloads)
        assert server.call("device-server/tools/call", **call, arguments={"volume": 40})["isError"] is False
        assert server.error("device-server/tools/call", **call, arguments={"volume": 400})["code"] == -32602
        (request,) = [each for each in map(json.loads, payloads) if each["payload"]["method"] == "initialize"]
        assert request["payload"]["params"]["capabilities"] == {"vision": vision}
        server.interrupt()
    logs = [file.read_text(errors="replace") for file in server.data.glob("*.log*")]
    log = "\n".join([*logs, server.printed()])
    assert '"method":"device-server/tools/call"' in log
    assert vision["token"] not in log


def test_unreachable_external_broker_is_reported(tmp_path: Path) -> None:
    for url, said in (("mqtt://127.0.0.1:9", "No broker answers"), ("http://127.0.0.1:1", "is not a broker URL")):
        done = run_kho("serve", "--data", str(tmp_path / "data"), "--port", "0", "--mqtt-url", url)
        assert done.returncode == 1
        assert said in done.stderr
        assert "Traceback" not in done.stderr


def test_backend_token_file_is_private(server: KhoServer) -> None:
    announced = server.data / "serving.json"
    assert json.loads(announced.read_text())["mqtt_token"]
    assert announced.stat().st_mode & 0o077 == 0


def refused(*options: str, environment: dict[str, str] | None = None) -> str:
    done = run_kho("devices", "simulate", *options, environment=environment)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    return done.stderr


def test_unreachable_broker_is_reported(tmp_path: Path) -> None:
    assert "Is 'kho serve' running" in refused("--mqtt-url", "mqtt://127.0.0.1:9", "--data", str(tmp_path))
    assert "is not a broker URL" in refused("--mqtt-url", "http://127.0.0.1:9", "--data", str(tmp_path))
    assert "is not a broker URL" in refused("--data", str(tmp_path), environment={"KHO_MQTT_URL": "mqtt://x:99999"})
