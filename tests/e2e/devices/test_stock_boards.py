"""Stock boards at a server that requires keys: each promise of the check-in, on the bytes of its answers."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from infra.local.iot.simulator.board_http import FirmwareHang
from infra.local.iot.simulator.firmware import parse_endpoint
from infra.local.iot.simulator.flash import FirmwareAbort, Flash
from infra.local.iot.simulator.stock_board import BoardTimes, StockBoard, parse_version
from tests.helpers.api_client import ApiClient, make_key, run_kho
from tests.helpers.duckduckgo import listener
from tests.helpers.environment import ORIGINAL_ENVIRONMENT
from tests.helpers.mqtt_client import RawMqttClient
from tests.helpers.wait import CEILING_SECONDS, until

if TYPE_CHECKING:
    import socket
    import threading
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from infra.local.iot.simulator.board_http import BoardAnswer
    from tests.helpers.kho_server import KhoServer

KHO = str(Path(sys.executable).with_name("kho"))
PROMPT = BoardTimes(first_retry=0.0, poll=0.0, poll_retry=0.0, answer=CEILING_SECONDS)
MAX_BYTES = 4_096
MAX_NAME = 15


def new_board(server: KhoServer, folder: Path, **options: Any) -> StockBoard:
    return StockBoard(Flash(folder / uuid4().hex), f"{server.address}/ota/", times=PROMPT, **options)


def operator(server: KhoServer, tenant: str) -> ApiClient:
    return ApiClient(server, make_key(server.data, tenant, "operator")["key"])


def claim(server: KhoServer, board: StockBoard, tenant: str) -> str:
    """Claim a board by the code that it shows, and return its id."""
    activation = board.check_in()
    assert activation
    claimed = operator(server, tenant).result("device-server/devices/claim", code=activation.code, name="Kitchen")
    device_id: str = claimed["device_id"]
    return device_id


def raw(board: StockBoard, path: str = "") -> BoardAnswer:
    """Return the answer to a check-in or, at a path, to another request."""
    return board._post(board.ota_url + path, board._description() if not path else b"{}")


def names(value: Any) -> Iterator[str]:
    for name, each in value.items() if isinstance(value, dict) else ():
        yield name
        yield from names(each)


def answering(body: bytes, status: str = "200 OK") -> AbstractContextManager[str]:
    """Return the running address of a server that gives each request this answer."""
    head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode()

    def converse(connection: socket.socket, _query: str, _ending: threading.Event) -> None:
        connection.recv(65_536)
        connection.sendall(head + body)

    return listener(converse)


@contextmanager
def simulated(server: KhoServer, flash: Path, *options: str) -> Iterator[Path]:
    """Run `kho devices simulate --stock`. Yield the file of its output."""
    output = flash.with_suffix(".out")
    command = [KHO, "devices", "simulate", "--stock", "--data", str(server.data), "--flash", str(flash), *options]
    with output.open("w") as file:
        process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, env=ORIGINAL_ENVIRONMENT)
    try:
        yield output
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(CEILING_SECONDS) == 0, output.read_text()


def shown_code(output: Path) -> str:
    """Wait for the code that a simulated board shows."""
    shown = re.compile(r"The board shows: '.*\\n(\d{6})'")
    until(lambda: shown.search(output.read_text()))
    match = shown.search(output.read_text())
    assert match
    return match[1]


@pytest.fixture(scope="module")
def tenant() -> str:
    return f"boards-{uuid4().hex}"


@pytest.fixture(scope="module")
def claimed(guarded: KhoServer, tenant: str, tmp_path_factory: pytest.TempPathFactory) -> StockBoard:
    """Return a board that was claimed."""
    board = new_board(guarded, tmp_path_factory.mktemp("board"))
    claim(guarded, board, tenant)
    return board


@pytest.fixture(scope="module")
def waiting(guarded: KhoServer, tmp_path_factory: pytest.TempPathFactory) -> StockBoard:
    """Return a board that waits to be claimed."""
    return new_board(guarded, tmp_path_factory.mktemp("board"))


@pytest.fixture(params=["claimed", "waiting"])
def board(request: pytest.FixtureRequest) -> StockBoard:
    board: StockBoard = request.getfixturevalue(request.param)
    return board


def test_answers_have_status_200_a_length_and_few_bytes_and_short_names(board: StockBoard) -> None:
    answer = raw(board)
    assert answer.status == 200
    assert answer.size < MAX_BYTES
    assert int(answer.headers["content-length"]) == len(answer.body)
    assert max(map(len, names(json.loads(answer.body)))) <= MAX_NAME
    assert raw(board, "activate").size < MAX_BYTES


def test_endpoint_has_no_scheme_and_is_parsed_by_firmware(guarded: KhoServer, claimed: StockBoard) -> None:
    endpoint = json.loads(raw(claimed).body)["mqtt"]["endpoint"]
    assert re.fullmatch(r"[A-Za-z0-9.-]+(:\d{1,5})?", endpoint)
    assert parse_endpoint(endpoint) == ("127.0.0.1", guarded.mqtt_port)


def test_all_settings_are_sent_each_time_as_texts_and_keepalive_as_a_number(claimed: StockBoard) -> None:
    content = json.loads(raw(claimed).body)
    assert json.loads(raw(claimed).body)["mqtt"] == content["mqtt"]
    mqtt = content["mqtt"]
    assert mqtt.pop("keepalive") == 240
    assert set(mqtt) == {"endpoint", "client_id", "username", "password", "publish_topic"}
    assert all(isinstance(value, str) and 0 < len(value.encode()) < 4_000 for value in mqtt.values())
    assert mqtt["client_id"] == mqtt["username"]
    assert mqtt["publish_topic"] == f"devices/{mqtt['client_id']}/up"


def test_claimed_board_gets_neither_activation_nor_websocket_nor_firmware(claimed: StockBoard) -> None:
    assert set(json.loads(raw(claimed).body)) == {"mqtt", "server_time"}


def test_waiting_board_gets_no_settings(waiting: StockBoard) -> None:
    assert set(json.loads(raw(waiting).body)) == {"activation", "server_time"}
    assert waiting.settings() is None


def test_server_time_is_milliseconds_and_its_offset_minutes(board: StockBoard) -> None:
    before = time.time() * 1000
    server_time = json.loads(raw(board).body)["server_time"]
    assert before - 1 <= server_time["timestamp"] <= time.time() * 1000 + 1
    assert isinstance(server_time["timezone_offset"], int)
    assert abs(server_time["timezone_offset"]) <= 14 * 60


def test_code_is_a_text_of_digits_and_stays_the_same(waiting: StockBoard) -> None:
    first, second = (json.loads(raw(waiting).body)["activation"] for _ in range(2))
    assert first == second
    assert re.fullmatch(r"[0-9]{6}", first["code"])
    assert first["message"].endswith(f"\n{first['code']}")
    assert isinstance(first["challenge"], str)
    assert first["challenge"]
    assert isinstance(first["timeout_ms"], int)


def test_activation_answers_202_until_it_is_claimed_and_then_200(waiting: StockBoard, claimed: StockBoard) -> None:
    assert (waiting.activate(), claimed.activate()) == (202, 200)


def test_board_is_not_redirected_at_an_address_without_a_slash(guarded: KhoServer, waiting: StockBoard) -> None:
    bare = new_board(guarded, waiting.flash._file.parent.parent, ssid='my "home"')
    bare.ota_url = f"{guarded.address}/ota"
    assert bare.check_in()
    assert bare.activate() == 202


def test_answers_are_not_compressed(board: StockBoard) -> None:
    assert "content-encoding" not in raw(board).headers


def test_stock_board_is_claimed_and_called_from_an_empty_flash(guarded: KhoServer, tmp_path: Path) -> None:
    """Each request and answer is printed. The log has neither the Client-Id nor the password."""
    tenant = f"home-{uuid4().hex}"
    with simulated(guarded, tmp_path / "flash", "--verbose") as output:
        code = shown_code(output)
        command = ("devices", "claim", code, "--name", "Kitchen", "--tenant", tenant, "--json")
        process = run_kho(*command, "--data", str(guarded.data))
        assert process.returncode == 0, process.stderr
        device = json.loads(process.stdout)["device_id"]
        until(lambda: "1 of 1 devices are connected" in output.read_text())
        call = {"device_id": device, "name": "self.audio_speaker.set_volume", "arguments": {"volume": 50}}
        result = operator(guarded, tenant).result("device-server/tools/call", **call)
        assert result == {"content": [{"type": "text", "text": "true"}], "isError": False}
    printed = output.read_text()
    for line in (
        "> POST /ota/ HTTP/1.1",
        "< HTTP/1.1 200 OK",
        "> POST /ota/activate HTTP/1.1",
        "< HTTP/1.1 202 Accepted",
        f'"code":"{code}"',
        f'"client_id":"{device}"',
    ):
        assert line in printed
    flash = Flash(tmp_path / "flash")
    client_id, password = flash.namespace("board")["uuid"], flash.namespace("mqtt")["password"]
    logged = guarded.printed() + (guarded.data / "kho.log").read_text()
    assert "boards/check_in" in logged
    for secret in (str(client_id), str(password)):
        assert secret in printed
        assert secret not in logged


def test_board_that_was_released_is_disconnected_and_shows_a_code_again(guarded: KhoServer, tmp_path: Path) -> None:
    tenant = f"home-{uuid4().hex}"
    board = new_board(guarded, tmp_path)
    device = claim(guarded, board, tenant)
    assert board.check_in() is None
    settings = board.settings()
    assert settings
    with RawMqttClient(settings.port) as connection:
        assert connection.connect(device, user_name=device, password=settings.password.encode()).reason == 0
        released = run_kho("devices", "release", device, "--tenant", tenant, "--data", str(guarded.data))
        assert released.returncode == 0, released.stderr
        until(lambda: connection.receive() is None)
    with RawMqttClient(settings.port) as connection:
        assert connection.connect(device, user_name=device, password=settings.password.encode()).reason == 5
    assert board.check_in()


def test_board_with_the_address_of_another_leaves_it_connected(guarded: KhoServer, tmp_path: Path) -> None:
    victim, impostor = (new_board(guarded, tmp_path) for _ in range(2))
    impostor.address = victim.address
    for each, tenant in ((victim, "victim"), (impostor, "impostor")):
        claim(guarded, each, f"{tenant}-{uuid4().hex}")
        assert each.check_in() is None
    own, other = victim.settings(), impostor.settings()
    assert own
    assert other
    assert own.client_id != other.client_id
    with RawMqttClient(own.port) as first, RawMqttClient(own.port) as second:
        assert first.connect(own.client_id, user_name=own.user_name, password=own.password.encode()).reason == 0
        assert second.connect(other.client_id, user_name=other.user_name, password=other.password.encode()).reason == 0
        first.settle()  # still connected
    with RawMqttClient(own.port) as thief:
        assert thief.connect(own.client_id, user_name=own.client_id, password=other.password.encode()).reason == 5


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        ({"mqtt": {"a_name_of_16_chr": "x"}}, FirmwareAbort),
        ({"mqtt": {"endpoint": "x" * 4_000}}, FirmwareAbort),
        ({"firmware": {"version": "v2.4.3", "url": "http://kho/x.bin"}}, FirmwareAbort),
        ({"message": "x" * 8_192}, FirmwareHang),
    ],
)
def test_simulated_board_has_the_traps_of_the_firmware(
    tmp_path: Path, answer: dict[str, Any], outcome: type[Exception]
) -> None:
    with answering(json.dumps(answer).encode()) as url:
        board = StockBoard(Flash(tmp_path), f"{url}/ota/", times=PROMPT)
        with pytest.raises(outcome):
            board.check_in()


def test_simulated_board_ignores_what_the_firmware_ignores(tmp_path: Path) -> None:
    content = {"mqtt": {"keepalive": "60", "endpoint": True, "list": []}, "activation": {"code": 123456}}
    with answering(json.dumps(content).encode()) as url:
        board = StockBoard(Flash(tmp_path), f"{url}/ota/", times=PROMPT)
        assert board.check_in() is None
    assert board.flash.namespace("mqtt") == {"keepalive": "60"}
    assert board.settings() is None


@pytest.mark.parametrize("status", ["201 Created", "204 No Content", "302 Found", "404 Not Found", "500 Error"])
def test_simulated_board_takes_only_status_200(tmp_path: Path, status: str) -> None:
    with answering(b"{}", status) as url:
        assert StockBoard(Flash(tmp_path), f"{url}/ota/", times=PROMPT).start() is None


def test_simulated_board_compares_versions_number_by_number() -> None:
    assert parse_version("2.4.10") > parse_version("2.4.9-rc1") > parse_version("2.4")
    for wrong in ("v2.4.3", "x", "2..3", "2.99999999999"):
        with pytest.raises(FirmwareAbort):
            parse_version(wrong)
