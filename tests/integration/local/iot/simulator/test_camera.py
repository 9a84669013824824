"""The camera and the alerts of a simulated board, equal to the firmware's."""

from __future__ import annotations

import socket
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from infra.local.iot.simulator.camera import TOOL_NAME, Camera
from infra.local.iot.simulator.device import DeviceAlert
from tests.helpers.duckduckgo import listener
from tests.helpers.wait import CEILING_SECONDS, until

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator

PHOTO = b"\xff\xd8\xff" + bytes(range(256))
CAMERA = Camera(PHOTO, "a0:85:e3:f4:49:34", "6f1f3b1e-0c11-4ab1-9d35-3f0c1a528a77", CEILING_SECONDS)
END = b"\r\n0\r\n\r\n"


@contextmanager
def answering(answer: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """Yield the address of a server that gives each request this answer, and the requests."""
    requests: list[bytes] = []

    def converse(connection: socket.socket, _query: str, _ending: threading.Event) -> None:
        request = b""
        while not request.endswith(END):
            request += connection.recv(65_536)
        requests.append(request)
        connection.sendall(answer)

    with listener(converse) as address:
        yield f"{address}/vision/explain?x=1", requests


def ok(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)


def take_photo(it: Any, **vision: str) -> Any:
    """Return the device's reply to a call of its camera, after an initialize with this offer."""
    it.ask("initialize", capabilities={"vision": vision} if vision else {})
    it.reply()
    return it.call(TOOL_NAME, question='một "quả bóng"?')


def test_photo_is_sent_in_the_chunks_of_the_firmware(talk: Any) -> None:
    with answering(ok(b'{"success":true}')) as (url, requests), talk(camera=CAMERA) as it:
        reply = take_photo(it, url=url, token="word")
    assert reply["result"] == {"content": [{"type": "text", "text": '{"success":true}'}], "isError": False}
    head, _, body = requests[0].partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    assert lines == [
        "POST /vision/explain?x=1 HTTP/1.1",
        f"Host: {url.split('/')[2]}",
        "Connection: close",
        f"Device-Id: {CAMERA.address}",
        f"Client-Id: {CAMERA.client_id}",
        "Authorization: Bearer word",
        "Content-Type: multipart/form-data; boundary=----ESP32_CAMERA_BOUNDARY",
        "Transfer-Encoding: chunked",
    ]
    chunks = []
    while body:
        size, _, body = body.partition(b"\r\n")
        length = int(size, 16)
        chunks.append(body[:length])
        assert body[length : length + 2] == b"\r\n"
        body = body[length + 2 :]
    mark = b"------ESP32_CAMERA_BOUNDARY"
    question = 'một "quả bóng"?'.encode()
    assert chunks == [
        mark + b'\r\nContent-Disposition: form-data; name="question"\r\n\r\n' + question + b"\r\n",
        mark + b'\r\nContent-Disposition: form-data; name="file"; filename="camera.jpg"\r\n'
        b"Content-Type: image/jpeg\r\n\r\n",
        PHOTO,
        b"\r\n" + mark + b"--\r\n",
        b"",
    ]


@pytest.mark.parametrize("status", ["401 Unauthorized", "202 Accepted", "413 Too Large", "500 Error"])
def test_other_status_than_200_is_an_error_of_the_tool(talk: Any, status: str) -> None:
    answer = f"HTTP/1.1 {status}\r\nContent-Length: 5\r\n\r\nwords".encode()
    with answering(answer) as (url, requests), talk(camera=CAMERA) as it:
        assert take_photo(it, url=url, token="")["error"] == {"message": "Failed to upload photo"}
    assert b"Authorization" not in requests[0]


def test_missing_offer_and_missing_server_are_errors_of_the_tool(talk: Any) -> None:
    with talk(camera=CAMERA) as it:
        assert take_photo(it)["error"] == {"message": "Image explain URL or token is not set"}
        with socket.create_server(("127.0.0.1", 0)) as closed:
            port = closed.getsockname()[1]
        reply = take_photo(it, url=f"http://127.0.0.1:{port}/", token="x")
        assert reply["error"] == {"message": "Failed to connect to explain URL"}


def test_board_hangs_at_an_answer_of_8_kb_and_its_network_works_on(talk: Any) -> None:
    with answering(ok(b"x" * 8_192)) as (url, _), talk(camera=CAMERA) as it:
        it.ask("initialize", capabilities={"vision": {"url": url, "token": "x"}})
        it.reply()
        it.ask("tools/call", name=TOOL_NAME, arguments={"question": "?"})
        until(lambda: it.device.hangs)
        received = it.device.counters.received
        it.ask("tools/call", name="self.test.echo", arguments={"text": "x"})
        until(lambda: it.device.counters.received == received + 1)
        assert it.heard.empty()
        assert it.device.connected


def test_calls_wait_for_a_photo(talk: Any) -> None:
    with answering(ok(b"seen")) as (url, _), talk(camera=CAMERA) as it:
        it.ask("initialize", capabilities={"vision": {"url": url, "token": "x"}})
        it.reply()
        photo = it.ask("tools/call", name=TOOL_NAME, arguments={"question": "?"})
        echo = it.ask("tools/call", name="self.test.echo", arguments={"text": "x"})
        assert [it.reply()["id"] for _ in range(2)] == [photo, echo]


def test_alert_is_shown_if_it_has_all_of_its_texts(talk: Any) -> None:
    shown: list[tuple[str, DeviceAlert]] = []
    with talk(show_alert=lambda *alert: shown.append(alert)) as it:
        for wrong in ({}, {"status": "s", "message": "m"}, {"status": "s", "message": 1, "emotion": "e"}):
            it.send({"type": "alert"} | wrong)
        it.send({"type": "alert", "status": "Kitchen", "message": "Cơm\nxong", "emotion": "happy"})
        until(lambda: it.device.alerts)
        alert = DeviceAlert("Kitchen", "Cơm\nxong", "happy")
        assert it.device.alerts == [alert]
        assert shown == [("sim", alert)]
        assert it.device.counters.dropped == 3
