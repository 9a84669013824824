"""DuckDuckGo on loopback: a forward proxy with its own certificate that answers with recorded pages.

The query selects the behaviour, so that one proxy serves every case concurrently.
"""

from __future__ import annotations

import contextlib
import html
import socket
import socketserver
import struct
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs

from tests.helpers.certificates import certify

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.helpers.certificates import Certificate

    Converse = Callable[[socket.socket, str, threading.Event], None]

HOST: Final = "html.duckduckgo.com"
PAGES: Final = Path(__file__).parents[1] / "data" / "duckduckgo"


class DuckDuckGoProxy(socketserver.ThreadingTCPServer):
    """The proxy and a record of its requests."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128

    def __init__(self, certificate: Certificate) -> None:
        super().__init__(("127.0.0.1", 0), _Conversation)
        self.tls = certificate.serving()
        self.authority = certificate.authority
        self.tls.set_alpn_protocols(["http/1.1"])
        self.targets: list[str] = []
        self.queries: list[str] = []
        self.ending = threading.Event()

    @property
    def address(self) -> str:
        """Return the proxy's address, as the setting takes it."""
        return f"http://127.0.0.1:{self.server_address[1]}"


@contextlib.contextmanager
def duckduckgo(folder: Path, *, name: str = HOST) -> Iterator[DuckDuckGoProxy]:
    """Serve inside the block, with a certificate for `name`."""
    certificate = certify(name, folder)
    with DuckDuckGoProxy(certificate) as proxy:
        thread = threading.Thread(target=proxy.serve_forever, name="duckduckgo", args=(0.02,))
        thread.start()
        try:
            yield proxy
        finally:
            proxy.ending.set()
            proxy.shutdown()
            thread.join()


@contextlib.contextmanager
def listener(converse: Converse) -> Iterator[str]:
    """Yield the address of a proxy that only runs `converse`."""
    ending = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            while not ending.is_set():
                with contextlib.suppress(OSError):
                    connection, _ = server.accept()
                    with connection:
                        converse(connection, "", ending)

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}"
        finally:
            ending.set()
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


def page(name: str) -> bytes:
    """Return a recorded page."""
    return (PAGES / name).read_bytes()


class _Conversation(socketserver.BaseRequestHandler):
    server: DuckDuckGoProxy

    def handle(self) -> None:
        with contextlib.suppress(OSError):
            head, _ = _read(self.request)
            method, target, _ = head.split(" ", 2)
            assert method == "CONNECT", head
            self.server.targets.append(target)
            self.request.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            with self.server.tls.wrap_socket(self.request, server_side=True) as connection:
                head, body = _read(connection)
                assert head.startswith("POST /html/ "), head
                query = parse_qs(body.decode(), strict_parsing=True)["q"][0]
                self.server.queries.append(query)
                CASES.get(query, _RESULTS)(connection, query, self.server.ending)


def _read(connection: socket.socket) -> tuple[str, bytes]:
    """Return the head and the body of one request."""
    received = b""
    while b"\r\n\r\n" not in received:
        part = connection.recv(65536)
        if not part:
            raise ConnectionResetError
        received += part
    head, _, body = received.partition(b"\r\n\r\n")
    lengths = [line.split(b":")[1] for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
    while len(body) < int(lengths[0] if lengths else 0):
        body += connection.recv(65536)
    return head.decode(), body


def _head(status: str, length: int) -> bytes:
    fields = ("content-type: text/html; charset=UTF-8", f"content-length: {length}", "connection: close")
    return "\r\n".join((f"HTTP/1.1 {status}", *fields, "", "")).encode()


def _answer(status: str, body: bytes) -> Converse:
    def answer(connection: socket.socket, _query: str, _ending: threading.Event) -> None:
        connection.sendall(_head(status, len(body)) + body)

    return answer


def _recorded(name: str, status: str = "200 OK") -> Converse:
    def answer(connection: socket.socket, query: str, _ending: threading.Event) -> None:
        body = page(name).replace(b"{query}", html.escape(query).encode())
        connection.sendall(_head(status, len(body)) + body)

    return answer


def silent(_connection: socket.socket, _query: str, ending: threading.Event) -> None:
    """Never answer."""
    ending.wait()


def reset(connection: socket.socket, _query: str, _ending: threading.Event) -> None:
    """Reset the connection."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def refuse(connection: socket.socket, _query: str, _ending: threading.Event) -> None:
    """Refuse to connect to anything."""
    _read(connection)
    connection.sendall(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n")


def _trickle(connection: socket.socket, _query: str, ending: threading.Event) -> None:
    connection.sendall(_head("200 OK", 1_000_000))
    while not ending.wait(0.2):
        connection.sendall(b"<")


def _trickle_head(connection: socket.socket, _query: str, ending: threading.Event) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\n")
    while not ending.wait(0.2):
        connection.sendall(b"x")


def _break_off(connection: socket.socket, _query: str, _ending: threading.Event) -> None:
    connection.sendall(_head("200 OK", 1_000_000) + page("results.html"))


_RESULTS: Final = _recorded("results.html")
CASES: Final[dict[str, Converse]] = {
    "nothing is found": _recorded("no-results.html"),
    "challenge": _recorded("challenge.html", "202 Accepted"),
    "challenge with status 200": _recorded("challenge.html"),
    "home page": _recorded("home.html"),
    "only advertisements": _recorded("only-ads.html"),
    "403": _answer("403 Forbidden", b"<html><body>Forbidden</body></html>"),
    "429": _answer("429 Too Many Requests", b""),
    "500": _answer("500 Internal Server Error", b"<html><body>Oops</body></html>"),
    "empty": _answer("200 OK", b""),
    "blank": _answer("200 OK", b" \r\n"),
    "garbage": _answer("200 OK", bytes(range(256)) * 40),
    "not HTML": _answer("200 OK", b'<?xml version="1.0" encoding="utf-16"?><rss><result/></rss>'),
    "not HTTP": lambda connection, _query, _ending: connection.sendall(b"220 mail.example ESMTP\r\n\r\n"),
    "redirection to itself": _answer("307 Temporary Redirect\r\nlocation: https://html.duckduckgo.com/html/", b""),
    "break off": _break_off,
    "reset": reset,
    "silent": silent,
    "trickle": _trickle,
    "trickle head": _trickle_head,
}
