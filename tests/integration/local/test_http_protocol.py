"""The gateway's connections: requests that never end, headers without end, and upgrades."""

from __future__ import annotations

import asyncio
import socket
import threading
from typing import TYPE_CHECKING, Any

import pytest
import uvicorn

from infra.local.gateway import Gateway
from infra.local.http_protocol import MAX_HEADER_BYTES, BoundedHttpProtocol
from infra.local.http_server import http_settings
from infra.local.sockets import listen
from infra.local.template import load
from tests.helpers.function_double import FunctionDouble
from tests.helpers.wait import CEILING_SECONDS, until

if TYPE_CHECKING:
    from collections.abc import Iterator


GET = b"GET / HTTP/1.1\r\nhost: x\r\n"


class ImpatientHttpProtocol(BoundedHttpProtocol):
    """A protocol whose limit ends within a test."""

    receive_seconds = 0.3


async def _application(scope: Any, receive: Any, send: Any) -> None:
    """Answer with the number of bytes of the body."""
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        size, more = size + len(message["body"]), message["more_body"]
    body = str(size).encode()
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _source(scope: Any, _receive: Any, send: Any) -> None:
    """Answer with the address that the request comes from."""
    body = scope["client"][0].encode()
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _served(protocol: type[BoundedHttpProtocol], application: Any = _application) -> Iterator[tuple[str, int]]:
    listener = listen("127.0.0.1", 0)
    server = uvicorn.Server(http_settings(application, protocol))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])))
    thread.start()
    until(lambda: server.started)
    yield listener.getsockname()
    server.should_exit = True
    thread.join(CEILING_SECONDS)


@pytest.fixture(scope="module")
def patient() -> Iterator[tuple[str, int]]:
    yield from _served(BoundedHttpProtocol)


@pytest.fixture(scope="module")
def impatient() -> Iterator[tuple[str, int]]:
    yield from _served(ImpatientHttpProtocol)


@pytest.fixture
def telling_sources() -> Iterator[tuple[str, int]]:
    yield from _served(BoundedHttpProtocol, _source)


def _answer(address: tuple[str, int], *parts: bytes) -> bytes:
    """Send the parts and return everything that is received until the server closes the connection."""
    with socket.create_connection(address, CEILING_SECONDS) as connection:
        received = b""
        try:
            for part in parts:
                connection.sendall(part)
            while data := connection.recv(65536):
                received += data
        except ConnectionError:
            pass
        return received


@pytest.mark.parametrize(
    "half",
    [b"", b"GET / HT", GET, GET + b"x: y", b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\n12345"],
)
def test_request_that_never_ends_is_closed(impatient: tuple[str, int], half: bytes) -> None:
    assert _answer(impatient, half).partition(b"\r\n")[0] in (b"HTTP/1.1 408 Request Timeout", b"")


@pytest.mark.parametrize("headers", [b"x: " + b"y" * 12_000, b"x: " + b"y" * 12_000 + b"\r\n\r\n", b"x: y\r\n" * 2_000])
def test_headers_over_10_kb_are_refused(patient: tuple[str, int], headers: bytes) -> None:
    assert _answer(patient, GET + headers).partition(b"\r\n")[0] == b"HTTP/1.1 431 Request Header Fields Too Large"


def test_headers_below_10_kb_and_long_bodies_are_taken(patient: tuple[str, int]) -> None:
    headers = GET.replace(b"GET", b"POST") + b"connection: close\r\ncontent-length: 1000000\r\nx: "
    headers += b"y" * (MAX_HEADER_BYTES - len(headers) - 40) + b"\r\n\r\n"
    assert _answer(patient, headers, b"z" * 1_000_000).endswith(b"\r\n\r\n1000000")
    split = [headers[start : start + 1000] for start in range(0, len(headers), 1000)]
    assert _answer(patient, *split, b"z" * 1_000_000).endswith(b"\r\n\r\n1000000")


@pytest.mark.parametrize(
    ("codings", "status"),
    [
        (b"transfer-encoding: chunked", b"200 OK"),
        (b"Transfer-Encoding: Chunked", b"200 OK"),
        (b"transfer-encoding: gzip, chunked", b"501 Not Implemented"),
        (b"transfer-encoding: gzip\r\ntransfer-encoding: chunked", b"501 Not Implemented"),
        (b"transfer-encoding: chunked, chunked", b"400 Bad Request"),
        (b"transfer-encoding: chunked, gzip", b"400 Bad Request"),
        (b"transfer-encoding: gzip", b"400 Bad Request"),
        (b"transfer-encoding: chunked\r\ncontent-length: 5", b"400 Bad Request"),
    ],
)
def test_only_chunked_bodies_are_taken(patient: tuple[str, int], codings: bytes, status: bytes) -> None:
    """A body in another coding would be read as if it had none (RFC 9112, section 6)."""
    request = GET.replace(b"GET", b"POST") + codings + b"\r\nconnection: close\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
    answer = _answer(patient, request)
    assert answer.partition(b"\r\n")[0] == b"HTTP/1.1 " + status
    assert answer.count(b"HTTP/1.1 ") == 1
    assert answer.endswith(b"\r\n3") == (status == b"200 OK")


def test_upgrade_is_not_offered(patient: tuple[str, int], capfd: pytest.CaptureFixture[str]) -> None:
    handshake = b"upgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
    answer = _answer(patient, GET + b"connection: Upgrade, close\r\n" + handshake + b"\r\n")
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert capfd.readouterr().err == ""


def test_waiting_for_a_slow_response_is_not_a_slow_request(impatient: tuple[str, int]) -> None:
    answer = _answer(impatient, GET + b"\r\n" + GET + b"connection: close\r\n\r\n")
    assert answer.count(b"HTTP/1.1 200 ") == 2


def test_word_of_a_proxy_does_not_change_the_source(telling_sources: tuple[str, int]) -> None:
    answer = _answer(telling_sources, GET + b"x-forwarded-for: 198.51.100.7\r\nconnection: close\r\n\r\n")
    assert answer.endswith(b"\r\n\r\n127.0.0.1")


def test_request_is_refused_when_the_server_ends_before_it() -> None:
    """An error tells the caller that the call may have taken effect."""
    running, released = threading.Event(), threading.Event()

    def function() -> None:
        running.set()
        released.wait(CEILING_SECONDS)

    gateway = Gateway(load(), FunctionDouble(function), authorizing=False, access_log=lambda *_: None)
    listener = listen("127.0.0.1", 0)
    server = uvicorn.Server(http_settings(gateway, end_seconds=0.1))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])))
    thread.start()
    until(lambda: server.started)
    with socket.create_connection(listener.getsockname(), CEILING_SECONDS) as client:
        client.sendall(b"GET /servers HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
        running.wait(CEILING_SECONDS)
        assert gateway.requests() == ["GET /servers"]
        server.should_exit = True
        response = b"".join(iter(lambda: client.recv(4096), b""))
    assert response.startswith(b"HTTP/1.1 504")
    assert b"OUT_OF_TIME" in response
    assert gateway.requests() == []
    thread.join(CEILING_SECONDS)
    released.set()
    gateway.close()
