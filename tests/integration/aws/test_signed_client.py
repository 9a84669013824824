"""Connections of the signed client: only complete responses are returned, each to its own request."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import pytest

from shared.aws import signed_client
from shared.aws.signed_client import Credentials, SignedServiceClient
from shared.platform.http import ConnectionFailed, ConnectionNotEstablished, ResponseTimeout
from tests.helpers.certificates import certify
from tests.helpers.wait import CEILING_SECONDS, until

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator
    from pathlib import Path

OK: Final = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nX-Amz-Id: a\r\n\r\nhi"


class ScriptedServer:
    """A server that answers each request with the same bytes, and records connections and requests."""

    def __init__(self, response: bytes, tls: ssl.SSLContext | None = None) -> None:
        self.response = response
        self.requests: list[bytes] = []
        self.connections: list[socket.socket] = []
        self._closed: list[socket.socket] = []
        self._tls = tls
        self._listener = socket.create_server(("127.0.0.1", 0))
        scheme = "https" if tls else "http"
        self.url = f"{scheme}://localhost:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def closed(self) -> int:
        """The number of connections that are closed."""
        return len(self._closed)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)  # wakes accept()
        self._listener.close()
        for each in self.connections:
            each.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            try:
                connection = self._tls.wrap_socket(connection, server_side=True) if self._tls else connection
            except OSError:  # the client does not trust the certificate
                connection.close()
                continue
            self.connections.append(connection)
            threading.Thread(target=self._serve, args=[connection], daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            while request := _read_request(connection):
                self.requests.append(request)
                connection.sendall(self.response)
                if b"connection: close" in self.response or self.response.endswith(b"cut"):
                    break
        except OSError:
            pass
        finally:
            self._closed.append(connection)
            connection.close()


def _read_request(connection: socket.socket) -> bytes:
    request = b""
    while b"\r\n\r\n" not in request:
        if not (received := connection.recv(65_536)):
            return b""
        request += received
    head, _, body = request.partition(b"\r\n\r\n")
    length = int(head.rpartition(b"content-length: ")[2])
    while len(body) < length:
        body += connection.recv(65_536)
    return head + b"\r\n\r\n" + body


@contextmanager
def serving(response: bytes, tls: ssl.SSLContext | None = None) -> Iterator[ScriptedServer]:
    server = ScriptedServer(response, tls)
    try:
        yield server
    finally:
        server.close()


def client_of(server: ScriptedServer, *, read_seconds: float = CEILING_SECONDS, **more: float) -> SignedServiceClient:
    return SignedServiceClient(
        "dynamodb", connect_seconds=CEILING_SECONDS, read_seconds=read_seconds, url=server.url, **more
    )


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        (OK, (200, {"content-length": "2", "x-amz-id": "a"}, b"hi")),
        (b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n", (400, {"content-length": "0"}, b"")),
        (b"HTTP/1.1 204 No Content\r\n\r\n", (204, {}, b"")),
        (b"HTTP/1.1 100 Continue\r\nlink: x\r\n\r\n" + OK, (200, {"content-length": "2", "x-amz-id": "a"}, b"hi")),
        (
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n3\r\n yo\r\n0\r\ntrailer: x\r\n\r\n",
            (200, {"transfer-encoding": "chunked"}, b"hi yo"),
        ),
        (b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nhi", (200, {"content-length": "2"}, b"hi")),
        (b"HTTP/1.1 200\r\ncontent-length: 0\r\nx:\r\n\r\n", (200, {"content-length": "0", "x": ""}, b"")),
        (
            b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n" + b"x" * 100_000,
            (200, {"content-length": "100000"}, b"x" * 100_000),
        ),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n186a0;a=b\r\n" + b"x" * 100_000 + b"\r\n0\r\n\r\n",
            (200, {"transfer-encoding": "Chunked"}, b"x" * 100_000),
        ),
    ],
)
def test_complete_response_is_parsed(response: bytes, expected: tuple[int, dict[str, str], bytes]) -> None:
    with serving(response) as server:
        client = client_of(server)
        assert client.post("/", b"{}", {}) == expected
        client.close()
        (request,) = server.requests
        head, _, body = request.partition(b"\r\n\r\n")
        start, *lines = head.decode().split("\r\n")
        assert (start, body) == ("POST / HTTP/1.1", b"{}")
        names = [line.partition(":")[0] for line in lines]
        assert sorted(names) == ["authorization", "content-length", "host", "x-amz-date"]
        assert f"host: {server.url.removeprefix('http://')}" in lines


@pytest.mark.parametrize(
    "response",
    [
        pytest.param(b"SSH-2.0-OpenSSH_9.2\r\n", id="another protocol"),
        pytest.param(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\ncut", id="body too short"),
        pytest.param(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\ncut", id="headers alone"),
        pytest.param(b"HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\nhi", id="length is not a number"),
        pytest.param(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nhi!", id="two lengths"),
        pytest.param(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nhi", id="no length"),
        pytest.param(b"HTTP/1.1 200 OK\r\ncontent-length: -2\r\n\r\nhi", id="negative length"),
        pytest.param(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n x: y\r\n\r\nhi", id="folded header"),
        pytest.param(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n" + b"x: y\r\n" * 100 + b"\r\n", id="endless headers"),
        pytest.param(b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\n", id="unknown coding"),
        pytest.param(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n-2\r\nhi\r\n0\r\n\r\n", id="chunk size"),
        pytest.param(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi!\r\n0\r\n\r\n", id="long chunk"),
        pytest.param(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhicut", id="chunk cut"),
        pytest.param(b"HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n", id="upgrade"),
        pytest.param(b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" + OK, id="early hints"),
        pytest.param(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nx: " + b"y" * 70_000, id="endless later header"),
        pytest.param(b"HTTP/1.1 200 OK\r\nx: " + b"y" * 70_000, id="endless header"),
    ],
)
def test_incomplete_response_is_rejected(response: bytes) -> None:
    with serving(response) as server:
        with pytest.raises(ConnectionFailed):
            client_of(server).post("/", b"{}", {})
        until(lambda: server.closed == 1)


def test_surplus_bytes_never_answer_the_next_request() -> None:
    for surplus in (b"!", OK.replace(b"hi", b"no")):
        with serving(OK + surplus) as server:
            client = client_of(server)
            assert [client.post("/", b"{}", {})[2] for _ in range(5)] == [b"hi"] * 5
            assert len(server.connections) == 5
            client.close()


def test_interrupt_propagates_and_closes_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with serving(OK) as server:
        client = client_of(server)
        monkeypatch.setattr("shared.platform.http._read_response", interrupt)
        with pytest.raises(KeyboardInterrupt):
            client.post("/", b"{}", {})
        until(lambda: server.closed == 1)


@pytest.mark.parametrize("target", ["/a b", "/a\r\nx: y", "/\n"])
def test_request_line_injection_is_rejected(target: str) -> None:
    with serving(OK) as server:
        client = client_of(server)
        with pytest.raises(ValueError, match="escaped"):
            client.post(target, b"", {})
        with pytest.raises(ValueError, match="one line"):
            client.post("/", b"", {"x": "a\r\ny: b"})
        until(lambda: server.closed == len(server.connections) == 2)
        assert server.requests == []


def test_connection_is_reused() -> None:
    with serving(OK) as server:
        client = client_of(server)
        for _ in range(5):
            assert client.post("/", b"{}", {})[2] == b"hi"
        assert len(server.connections) == 1
        client.close()
        until(lambda: server.closed == 1)


@pytest.mark.parametrize(
    ("response", "more"),
    [(OK.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n"), {}), (OK, {"max_idle_seconds": 0.0})],
)
def test_connection_close_is_honored(response: bytes, more: dict[str, float]) -> None:
    with serving(response) as server:
        client = client_of(server, **more)
        for _ in range(3):
            assert client.post("/", b"{}", {})[2] == b"hi"
        assert len(server.connections) == 3
        client.close()


def test_closed_connection_is_not_reused() -> None:
    with serving(OK) as server:
        client = client_of(server)
        client.post("/", b"{}", {})
        server.connections[0].shutdown(socket.SHUT_RDWR)
        until(lambda: server.closed == 1)
        assert client.post("/", b"{}", {})[2] == b"hi"
        assert len(server.connections) == 2
        client.close()


def test_pool_keeps_at_most_100_connections() -> None:
    with serving(b"") as server:
        client, answers = client_of(server), []
        threads = [threading.Thread(target=lambda: answers.append(client.post("/", b"{}", {}))) for _ in range(130)]
        for thread in threads:
            thread.start()
        until(lambda: len(server.requests) == 130)
        for connection in list(server.connections):
            connection.sendall(OK)
        for thread in threads:
            thread.join()
        assert len(answers) == 130
        until(lambda: server.closed == 30)
        client.close()
        until(lambda: server.closed == 130)


def test_read_timeout_differs_from_connect_error() -> None:
    with serving(b"") as server:
        with pytest.raises(ResponseTimeout) as timeout:
            client_of(server, read_seconds=0.2).post("/", b"{}", {})
        until(lambda: server.closed == 1)  # although the traceback holds the response
        assert timeout.traceback
    with pytest.raises(ConnectionNotEstablished):
        client_of(server).post("/", b"{}", {})


def test_certificate_must_be_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate = certify("localhost", tmp_path)
    with serving(OK, certificate.serving()) as server:
        with pytest.raises(ConnectionNotEstablished):
            client_of(server).post("/", b"{}", {})
        monkeypatch.setenv("AWS_CA_BUNDLE", str(certificate.authority))
        client = client_of(server)
        assert client.post("/", b"{}", {})[0] == 200
        client.close()
    other = certify("elsewhere.example", tmp_path)
    monkeypatch.setenv("AWS_CA_BUNDLE", str(other.authority))
    with serving(OK, other.serving()) as server, pytest.raises(ConnectionNotEstablished):
        client_of(server).post("/", b"{}", {})


def test_credentials_are_taken_again_after_a_step_back_of_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their end is believed by the clock that set it alone."""
    clock, taken = [datetime(2030, 1, 3, tzinfo=UTC)], []

    def current() -> Credentials:
        taken.append(clock[0])
        return Credentials("key", "secret", "", clock[0] + timedelta(minutes=10))

    class Now(datetime):
        @classmethod
        def now(cls, _tz: Any = None) -> Any:
            return clock[0]

    monkeypatch.setattr(signed_client, "datetime", Now)
    monkeypatch.setattr(Credentials, "current", current)
    with serving(OK) as server:
        client = client_of(server)
        for at in (3, 3, 1, 1):
            clock[0] = datetime(2030, 1, at, tzinfo=UTC)
            client.post("/", b"{}", {})
        client.close()
    assert taken == [datetime(2030, 1, 3, tzinfo=UTC), datetime(2030, 1, 1, tzinfo=UTC)]
