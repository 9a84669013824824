"""Requests over connections of our own: what is heard is whole, and is what was asked for."""

from __future__ import annotations

import gc
import socket
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import pytest

from shared.aws.http_connection import HttpConnection, InvalidResponse, _ResponseParser
from shared.aws.signed_client import ConnectionFailed, ConnectionNotEstablished, ResponseTimeout, SignedServiceClient
from tests.helpers.certificates import certify
from tests.helpers.wait import CEILING_SECONDS, until

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator
    from pathlib import Path

OK: Final = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nX-Amz-Id: a\r\n\r\nhi"


class Speaking:
    """A server that says the same bytes to each request, and counts who came."""

    def __init__(self, said: bytes, tls: ssl.SSLContext | None = None) -> None:
        self.said = said
        self.heard: list[bytes] = []
        self.visitors: list[socket.socket] = []
        self._endings: list[socket.socket] = []
        self._tls = tls
        self._listener = socket.create_server(("127.0.0.1", 0))
        scheme = "https" if tls else "http"
        self.url = f"{scheme}://localhost:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def ended(self) -> int:
        """The number of connections that are over."""
        return len(self._endings)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)  # else who accepts goes on
        self._listener.close()
        for each in self.visitors:
            each.close()

    def _accept(self) -> None:
        while True:
            try:
                visitor, _ = self._listener.accept()
            except OSError:
                return
            try:
                visitor = self._tls.wrap_socket(visitor, server_side=True) if self._tls else visitor
            except OSError:  # the visitor does not trust the certificate
                visitor.close()
                continue
            self.visitors.append(visitor)
            threading.Thread(target=self._serve, args=[visitor], daemon=True).start()

    def _serve(self, visitor: socket.socket) -> None:
        try:
            while request := visitor.recv(65_536):
                self.heard.append(request)
                visitor.sendall(self.said)
                if b"connection: close" in self.said or self.said.endswith(b"cut"):
                    break
        except OSError:
            pass
        finally:
            self._endings.append(visitor)
            visitor.close()


@contextmanager
def speaking(said: bytes, tls: ssl.SSLContext | None = None) -> Iterator[Speaking]:
    server = Speaking(said, tls)
    try:
        yield server
    finally:
        server.close()


def asked(server: Speaking) -> tuple[int, dict[str, str], bytes]:
    connection = connected(server)
    try:
        return connection.request("POST", "/", {"host": "localhost"}, b"{}")
    finally:
        connection.close()


def answers() -> list[_ResponseParser]:
    """Return all answers that are in memory."""
    return [each for each in gc.get_objects() if isinstance(each, _ResponseParser)]


def connected(server: Speaking) -> HttpConnection:
    return HttpConnection(urlsplit(server.url), None, connect_seconds=CEILING_SECONDS, read_seconds=CEILING_SECONDS)


def service(server: Speaking, *, read_seconds: float = CEILING_SECONDS, **more: float) -> SignedServiceClient:
    return SignedServiceClient(
        "dynamodb", connect_seconds=CEILING_SECONDS, read_seconds=read_seconds, url=server.url, **more
    )


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        (OK, (200, {"content-length": "2", "x-amz-id": "a"}, b"hi")),
        (b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n", (400, {"content-length": "0"}, b"")),
        (b"HTTP/1.1 204 No Content\r\n\r\n", (204, {}, b"")),
        (b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" + OK, (200, {"content-length": "2", "x-amz-id": "a"}, b"hi")),
        (
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n3\r\n yo\r\n0\r\ntrailer: x\r\n\r\n",
            (200, {"transfer-encoding": "chunked"}, b"hi yo"),
        ),
        (
            b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nhi",
            (200, {"content-length": "2"}, b"hi"),
        ),
    ],
)
def test_complete_response_is_parsed(said: bytes, answer: tuple[int, dict[str, str], bytes]) -> None:
    with speaking(said) as server:
        assert asked(server) == answer
        assert server.heard == [b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n{}"]


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(b"SSH-2.0-OpenSSH_9.2\r\n", id="another protocol"),
        pytest.param(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\ncut", id="too short"),
        pytest.param(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\ncut", id="headers alone"),
        pytest.param(b"HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\nhi", id="no length"),
        pytest.param(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nhi!", id="two lengths"),
        pytest.param(OK + OK, id="two answers"),
        pytest.param(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nhi", id="no end but the connection's"),
        pytest.param(b"HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n", id="an upgrade"),
        pytest.param(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nx: " + b"y" * 70_000, id="at length, later"),
        pytest.param(b"HTTP/1.1 200 OK\r\nx: " + b"y" * 70_000, id="headers without end"),
    ],
)
def test_incomplete_response_is_rejected(said: bytes) -> None:
    with speaking(said) as server, pytest.raises(InvalidResponse):
        asked(server)


def test_response_memory_is_released() -> None:
    with speaking(OK) as server:
        connection = connected(server)
        gc.collect()
        gc.disable()
        try:
            before = answers()  # of other tests, where something still holds them
            for _ in range(10):
                connection.request("GET", "/", {}, b"")
            assert [each for each in answers() if not any(each is other for other in before)] == []
        finally:
            gc.enable()
            connection.close()


def test_interrupt_propagates(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("shared.aws.http_connection._ResponseParser.on_header", interrupted)
    with speaking(OK) as server, pytest.raises(KeyboardInterrupt):
        asked(server)


@pytest.mark.parametrize("target", ["/a b", "/a\r\nx: y", "/\n"])
def test_request_line_injection_is_rejected(target: str) -> None:
    with speaking(OK) as server:
        connection = connected(server)
        with pytest.raises(ValueError, match="one line"):
            connection.request("GET", target, {}, b"")
        with pytest.raises(ValueError, match="one line"):
            connection.request("GET", "/", {"x": "a\r\ny: b"}, b"")
        connection.close()
        with pytest.raises(ValueError, match="one line"):
            service(server).post(target, b"", {})
        until(lambda: server.ended == len(server.visitors) == 2)
        assert server.heard == []


def test_connection_is_reused() -> None:
    with speaking(OK) as server:
        asking = service(server)
        for _ in range(5):
            assert asking.post("/", b"{}", {})[2] == b"hi"
        assert len(server.visitors) == 1
        asking.close()
        until(lambda: server.ended == 1)


@pytest.mark.parametrize(
    ("said", "more"),
    [(OK.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n"), {}), (OK, {"kept_seconds": 0.0})],
)
def test_connection_close_is_honored(said: bytes, more: dict[str, float]) -> None:
    with speaking(said) as server:
        asking = service(server, **more)
        for _ in range(3):
            assert asking.post("/", b"{}", {})[2] == b"hi"
        assert len(server.visitors) == 3
        asking.close()


def test_closed_connection_is_not_reused() -> None:
    with speaking(OK) as server:
        asking = service(server)
        asking.post("/", b"{}", {})
        server.visitors[0].shutdown(socket.SHUT_RDWR)
        until(lambda: server.ended == 1)
        assert asking.post("/", b"{}", {})[2] == b"hi"
        assert len(server.visitors) == 2
        asking.close()


def test_pool_keeps_at_most_100_connections() -> None:
    with speaking(b"") as server:
        asking, answers = service(server), []
        asking_at_once = [
            threading.Thread(target=lambda: answers.append(asking.post("/", b"{}", {}))) for _ in range(130)
        ]
        for thread in asking_at_once:
            thread.start()
        until(lambda: len(server.heard) == 130)
        for visitor in list(server.visitors):
            visitor.sendall(OK)
        for thread in asking_at_once:
            thread.join()
        assert len(answers) == 130
        until(lambda: server.ended == 30)
        asking.close()
        until(lambda: server.ended == 130)


def test_read_timeout_differs_from_connect_error() -> None:
    with speaking(b"") as server, pytest.raises(ResponseTimeout):
        service(server, read_seconds=0.2).post("/", b"{}", {})
    with pytest.raises(ConnectionNotEstablished):
        service(server).post("/", b"{}", {})
    with speaking(OK + b"cut") as server, pytest.raises(ConnectionFailed):
        service(server).post("/", b"{}", {})


def test_certificate_must_be_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate = certify("localhost", tmp_path)
    with speaking(OK, certificate.serving()) as server:
        with pytest.raises(ConnectionNotEstablished):
            service(server).post("/", b"{}", {})
        monkeypatch.setenv("AWS_CA_BUNDLE", str(certificate.authority))
        trusting = service(server)
        assert trusting.post("/", b"{}", {})[0] == 200
        trusting.close()
    other = certify("elsewhere.example", tmp_path)
    monkeypatch.setenv("AWS_CA_BUNDLE", str(other.authority))
    with speaking(OK, other.serving()) as server, pytest.raises(ConnectionNotEstablished):
        service(server).post("/", b"{}", {})
