"""Photos and alerts at a server that requires keys: what the board, its model and the caller see."""

from __future__ import annotations

import json
import secrets
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from infra.local.iot.simulator.camera import TOOL_NAME, Camera
from infra.local.iot.simulator.device import DeviceAlert, DeviceModel
from infra.local.iot.simulator.fleet import Fleet
from tests.e2e.devices.test_stock_boards import claim, new_board, operator, shown_code, simulated
from tests.e2e.documents.test_index_unavailable import processor_seconds
from tests.helpers.api_client import run_kho
from tests.helpers.kho_server import KhoServer
from tests.helpers.mcp_events import MODERN, request_event
from tests.helpers.model_server import FAILING, SLOW, ModelRequestHandler, ModelServer, reply_with
from tests.helpers.wait import CEILING_SECONDS, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from infra.local.iot.simulator.device import SimulatedDevice
    from tests.helpers.api_client import ApiClient

QUESTION = "Trên bàn có gì? \"quả bóng\" hay 'cốc'?"
ANSWER = 'Một quả bóng đỏ và một chiếc cốc "xanh".'
SMALL = b"\xff\xd8\xff" + b"a small photo" * 100


@pytest.fixture(scope="module")
def server(model: ModelServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KhoServer]:
    """Yield a server with a model that has more time than any test takes."""
    settings = model.settings("") | {"KHO_VISION_SECONDS": "3600", "KHO_DEVICE_PHOTO_BURST": "1000"}
    data = tmp_path_factory.mktemp("cameras") / "data"
    with KhoServer(data, "--auth", "required", environment=settings) as running:
        yield running


class Home:
    """A claimed board with a camera, and its operator."""

    def __init__(self, server: KhoServer, fleet: Fleet, client: ApiClient) -> None:
        self.server, self.fleet, self.client = server, fleet, client

    @property
    def board(self) -> SimulatedDevice:
        return self.fleet.devices[0]

    def ask(self, name: str = TOOL_NAME, **arguments: Any) -> tuple[int, Any]:
        """Return the status and the body of a call of a tool."""
        params = {"device_id": self.board.device_id, "name": name, "arguments": arguments, "timeout_ms": 25_000}
        return self.client.direct("device-server/tools/call", **params)

    def photo(self, question: str = QUESTION) -> Any:
        """Return the content of the text that a caller gets for a photo."""
        status, body = self.ask(question=question)
        assert status == 200, body
        (part,) = body["content"]
        assert (part["type"], body["isError"]) == ("text", False)
        return json.loads(part["text"])


@contextmanager
def home(server: KhoServer, folder: Path, photo: bytes = SMALL) -> Iterator[Home]:
    """Claim a board, and connect it with the settings that it gets."""
    tenant = f"home-{uuid4().hex}"
    board = new_board(server, folder)
    claim(server, board, tenant)
    assert board.check_in() is None
    settings = board.settings()
    assert settings
    model = DeviceModel(
        user_name=settings.user_name,
        password=settings.password.encode(),
        camera=Camera(photo, board.address, board.client_id, CEILING_SECONDS),
    )
    with Fleet(settings.host, settings.port, [settings.client_id], model) as fleet:
        fleet.start()
        until(lambda: fleet.devices[0].firmware.vision)
        yield Home(server, fleet, operator(server, tenant))


@pytest.mark.parametrize("size", [60_000, 300_000])
def test_caller_gets_the_answer_to_a_photo(server: KhoServer, model: ModelServer, tmp_path: Path, size: int) -> None:
    model.behave = reply_with(ANSWER)
    photo = b"\xff\xd8\xff" + secrets.token_bytes(size - 3)
    with home(server, tmp_path, photo) as it:
        offered = it.board.firmware.vision
        assert offered["url"] == f"{server.address}/vision/explain"
        assert it.photo() == {"success": True, "response": ANSWER}
        path = f"/mcp/devices/{it.board.device_id}"
        params = {"name": TOOL_NAME.replace(".", "_"), "arguments": {"question": QUESTION}}
        event = request_event("tools/call", MODERN, **params)
        sent = server.post(path, event["body"].encode(), None, **event["headers"] | it.client.headers)
        result = json.loads(sent.data)["result"]
        assert json.loads(result["content"][0]["text"])["response"] == ANSWER
    asked = model.asked[-1].body["messages"][-1]["content"]
    assert asked[1]["text"] == QUESTION
    assert asked[0]["image_url"]["url"].startswith("data:image/jpeg;base64,/9j/")
    logged = server.printed() + (server.data / "kho.log").read_text()
    assert "boards/explain_photo" in logged
    for secret in (offered["token"], "quả bóng", "Trên bàn"):
        assert secret not in logged


def test_form_whose_name_never_ends_costs_no_more_than_any_other(
    server: KhoServer, model: ModelServer, tmp_path: Path
) -> None:
    """A form with the worst head is refused at once, in the time of one with a photo of the same size."""
    model.behave = reply_with(ANSWER)
    size = 256 * 1024

    def send(head: str, content: bytes) -> tuple[Any, float]:
        form = f"--b\r\nContent-Disposition: form-data; {head}\r\n\r\n".encode() + content + b"\r\n--b--\r\n"
        before = processor_seconds(server)
        response = server.post(path, form, "multipart/form-data; boundary=b", authorization=f"Bearer {token}")
        assert response.status == 200
        return response.json(), processor_seconds(server) - before

    with home(server, tmp_path) as it:
        path, token = "/vision/explain", it.board.firmware.vision["token"]
        answer, usual = send('name="file"', SMALL.ljust(size))
        assert answer == {"success": True, "response": ANSWER}
        for head in ('name="a' + ";" * size, 'name="a' + '\\"' * (size // 2), ";x=y" * (size // 4)):
            answer, seconds = send(head, SMALL)
            assert answer["success"] is False
            assert "head of more than 2048 bytes" in answer["message"]
            assert seconds < 20 * (usual + 0.05)


def test_caller_waits_while_the_model_works(server: KhoServer, model: ModelServer, tmp_path: Path) -> None:
    released = threading.Event()

    def behave(conversation: ModelRequestHandler) -> None:
        released.wait(CEILING_SECONDS)
        reply_with(ANSWER)(conversation)

    model.behave = behave
    before = len(model.asked)
    with home(server, tmp_path) as it, ThreadPoolExecutor(2) as callers:
        photo = callers.submit(it.photo)
        until(lambda: len(model.asked) > before)
        behind = callers.submit(it.ask, "self.test.echo", text="behind")
        received = it.board.counters.received
        until(lambda: it.board.counters.received > received or behind.running())
        assert not photo.done()
        released.set()
        assert photo.result()["response"] == ANSWER
        assert behind.result()[1]["content"][0]["text"] == "behind"


def test_caller_gets_a_worded_refusal_of_a_model_that_fails_and_a_part_of_a_long_answer(
    server: KhoServer, model: ModelServer, tmp_path: Path
) -> None:
    with home(server, tmp_path) as it:
        model.behave = FAILING["an error"]
        assert it.photo() == {"success": False, "message": "The language model answered with an error."}
        model.behave = reply_with("từ " * 7_000)
        shown = it.photo()
        assert shown["success"]
        assert shown["response"].endswith("từ…")
        assert len(json.dumps(shown, ensure_ascii=False).encode()) < 4_096
        assert not it.board.hangs
        assert it.ask("self.test.echo", text="x")[1]["content"][0]["text"] == "x"


def test_caller_gets_a_worded_refusal_of_a_model_that_takes_too_long(model: ModelServer, tmp_path: Path) -> None:
    model.behave = SLOW["silence"]
    settings = model.settings("") | {"KHO_VISION_SECONDS": "1"}
    with (
        KhoServer(tmp_path / "data", "--auth", "required", environment=settings) as server,
        home(server, tmp_path) as it,
    ):
        message = "The language model did not answer within 1 seconds."
        assert it.photo() == {"success": False, "message": message}
        assert it.ask("self.test.echo", text="x")[0] == 200


def test_photo_without_a_valid_token_is_an_error_of_the_board(
    server: KhoServer, model: ModelServer, tmp_path: Path
) -> None:
    with home(server, tmp_path) as it, home(server, tmp_path) as other:
        before = len(model.asked)
        valid = dict(it.board.firmware.vision)
        device_id, _, secret = valid["token"].rpartition(".")
        for token in ("", "x", f"{other.board.device_id}.{secret}", f"{device_id}.{'0' * 43}"):
            it.fleet.do(lambda token=token: it.board.firmware.vision.update(token=token))  # type: ignore[misc]
            status, body = it.ask(question="?")
            assert (status, body["error"]["code"]) == (502, "DEVICE_ERROR")
            assert body["error"]["message"] == "Failed to upload photo"
        assert len(model.asked) == before
        model.behave = reply_with(ANSWER)
        it.fleet.do(lambda: it.board.firmware.vision.update(valid))
        assert it.photo()["response"] == ANSWER


def test_alert_is_seen_on_the_board(server: KhoServer, tmp_path: Path) -> None:
    with home(server, tmp_path) as it:
        device_id = it.board.device_id
        whole = {"device_id": device_id, "status": "Bếp", "message": 'Cơm "xong"\nrồi.', "emotion": "happy"}
        assert it.client.result("device-server/devices/alert", **whole) == {"sent": True}
        assert it.client.result("device-server/devices/alert", device_id=device_id, message="Short") == {"sent": True}
        status, body = it.client.jsonrpc("device-server/devices/alert", **whole)
        assert (status, body["result"]) == (200, {"sent": True})
        event = request_event("tools/call", MODERN, name="devices_alert", arguments=whole)
        sent = server.post("/mcp", event["body"].encode(), None, **event["headers"] | it.client.headers)
        result = json.loads(sent.data)["result"]
        assert result["structuredContent"] == {"sent": True}
        first = DeviceAlert("Bếp", 'Cơm "xong"\nrồi.', "happy")
        until(lambda: len(it.board.alerts) == 4)
        assert it.board.alerts == [first, DeviceAlert("Message", "Short", "neutral"), first, first]


def test_alert_to_an_absent_device_and_wrong_texts_are_refused(server: KhoServer, tmp_path: Path) -> None:
    with home(server, tmp_path) as it:
        device_id = it.board.device_id

        def error(**params: Any) -> tuple[int, Any]:
            status, body = it.client.direct("device-server/devices/alert", device_id=device_id, **params)
            return status, body["error"]

        for field, wrong in (
            ("message", ""),
            ("message", " \n"),
            ("message", "a\0b"),
            ("message", "x" * 1_025),
            ("status", "x" * 65),
            ("emotion", "So happy"),
        ):
            status, problem = error(**{"message": "m", field: wrong})
            assert (status, problem["details"][0]["field"]) == (400, field)
        it.fleet.do(it.board.stop)
        until(lambda: error(message="m")[0] == 503)
        status, problem = error(message="m")
        assert (problem["code"], problem["details"]["sent"]) == ("DEVICE_OFFLINE", False)
        assert it.board.alerts == []


def test_stock_board_sees_and_is_spoken_to(server: KhoServer, model: ModelServer, tmp_path: Path) -> None:
    """Every request of the board is printed, and every alert."""
    model.behave = reply_with(ANSWER)
    tenant = f"home-{uuid4().hex}"
    with simulated(server, tmp_path / "flash", "--camera", "--verbose") as output:
        claimed = operator(server, tenant).result("device-server/devices/claim", code=shown_code(output), name="Porch")
        device_id = claimed["device_id"]
        until(lambda: "1 of 1 devices are connected" in output.read_text())
        params = {"device_id": device_id, "name": TOOL_NAME, "arguments": {"question": QUESTION}}
        result = operator(server, tenant).result("device-server/tools/call", **params, timeout_ms=25_000)
        assert json.loads(result["content"][0]["text"])["response"] == ANSWER
        sent = run_kho(
            *("devices", "alert", device_id, "Dinner is ready.", "--status", "Kitchen"),
            *("--tenant", tenant, "--data", str(server.data)),
        )
        assert sent.returncode == 0, sent.stderr
        alert = f"{device_id} shows: 'Kitchen', 'Dinner is ready.', 'neutral'"
        until(lambda: alert in output.read_text())
    printed = output.read_text()
    for line in ("> POST /vision/explain HTTP/1.1", "> Transfer-Encoding: chunked", QUESTION, "bytes]", ANSWER[:10]):
        assert line in printed
