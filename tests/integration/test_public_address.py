"""Requests to addresses that a caller chooses, and single ones to configured servers: their reach, time and size."""

from __future__ import annotations

import gzip
import socket
import threading
import tracemalloc
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from shared.platform.http import ConnectionFailed, send_once
from shared.platform.public_address import (
    AddressFailed,
    AddressRefused,
    PublicClient,
    PublicResponse,
    RequestLimits,
    is_public,
)
from tests.helpers.certificates import certify
from tests.helpers.wait import CEILING_SECONDS, until

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterator
    from pathlib import Path

PUBLIC = "93.184.215.14"
OPEN: dict[str, Any] = {"seconds": CEILING_SECONDS, "max_bytes": 1 << 20, "schemes": ("http", "https"), "redirects": 3}


class Peer:
    """A server that gives one response to every connection, and the addresses that clients asked to connect to."""

    def __init__(self, *response: bytes, tls: ssl.SSLContext | None = None, drips: bool = False) -> None:
        self.connected: list[tuple[str, int]] = []
        self.requests: list[bytes] = []
        self._responses = list(response)
        self._tls = tls
        self._drips = drips
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]

    def connect(self, address: tuple[str, int], seconds: float) -> socket.socket:
        """Connect to the peer, wherever the client wanted to."""
        self.connected.append(address)
        return socket.create_connection(self._listener.getsockname(), seconds)

    def serve(self) -> None:
        """Answer until the listener is closed."""
        try:
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._answer, args=(connection,), daemon=True).start()
        except OSError:
            return

    def _answer(self, connection: socket.socket) -> None:
        response = self._responses.pop(0) if len(self._responses) > 1 else self._responses[0]
        try:
            with self._tls.wrap_socket(connection, server_side=True) if self._tls else connection as channel:
                self.requests.append(channel.recv(65536))
                channel.sendall(response)
                while self._drips:
                    channel.sendall(b"x")
                    threading.Event().wait(0.01)
        except OSError:
            return

    def close(self) -> None:
        """Stop listening."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


@contextmanager
def peer(*response: bytes, **options: Any) -> Iterator[Peer]:
    server = Peer(*response, **options)
    threading.Thread(target=server.serve, daemon=True).start()
    yield server
    server.close()


def _ok(body: bytes = b"page", *headers: str) -> bytes:
    return "\r\n".join(["HTTP/1.1 200 OK", f"content-length: {len(body)}", *headers, "", ""]).encode() + body


def _redirect(location: str) -> bytes:
    return f"HTTP/1.1 302 Found\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n".encode()


def _names(**addresses: list[str]) -> Callable[[str, int], list[str]]:
    return lambda host, _port: addresses[host.partition(".")[0]]


def _request(server: Peer, url: str, **options: Any) -> PublicResponse:
    limits = {name: options.pop(name) for name in list(options) if name not in ("resolve", "tls")}
    options.setdefault("resolve", _names(good=[PUBLIC]))
    return PublicClient(RequestLimits(**OPEN | limits), connect=server.connect, **options).request("GET", url)


ADDRESSES = {
    PUBLIC: True,
    "2606:2800:21f:cb07:6820:80da:af6b:8b2c": True,
    "64:ff9b::5db8:d70e": True,
    **dict.fromkeys(
        (
            *("127.0.0.1", "127.9.9.9", "0.0.0.0", "10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1"),
            *("169.254.169.254", "192.0.0.1", "192.0.0.9", "192.0.0.100", "192.0.2.1", "192.88.99.1", "198.18.0.1"),
            *("224.0.0.1", "255.255.255.255", "240.0.0.1", "2001:1::1", "2001:20::1"),
            *("::", "::1", "fe80::1", "fe80::1%lo", "fc00::1", "fd00:ec2::254", "ff02::1", "2001:db8::1"),
            *("::ffff:127.0.0.1", "::ffff:93.184.215.14", "::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe"),
            *("64:ff9b:1::1", "2002:7f00:1::", "2001:0:7f00:1::", "3fff::1", "not an address"),
        ),
        False,
    ),
}


@pytest.mark.parametrize(("address", "expected"), ADDRESSES.items())
def test_public_addresses(address: str, expected: bool) -> None:
    assert is_public(address) is expected


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "64:ff9b::7f00:1", "not an address"]
)
def test_neither_a_name_nor_a_redirect_leads_to_an_address_that_is_not_public(address: str) -> None:
    names = _names(good=[PUBLIC], bad=[address], both=[PUBLIC, address])
    with peer(_redirect("http://bad.example/")) as server:
        for url in ("http://bad.example/", "http://both.example/"):
            with pytest.raises(AddressRefused, match="is not a public address"):
                _request(server, url, resolve=names, loopback=True)
        assert server.connected == []
        with pytest.raises(AddressRefused, match=r"redirects to bad\.example, which is not a public address"):
            _request(server, "http://good.example/", resolve=names, loopback=True)
        assert server.connected == [(PUBLIC, 80)]


def test_loopback_is_reached_only_if_the_caller_names_it() -> None:
    def numeric(host: str, _port: int) -> list[str]:
        return [host]

    with peer(_ok(), _redirect("http://127.0.0.1/other")) as server:
        with pytest.raises(AddressRefused):
            _request(server, "http://127.0.0.1:8080/", resolve=numeric)
        assert _request(server, "http://127.0.0.1:8080/", resolve=numeric, loopback=True).content == b"page"
        with pytest.raises(AddressRefused, match=r"redirects to 127\.0\.0\.1"):
            _request(server, "http://127.0.0.1:8080/", resolve=numeric, loopback=True)
        with pytest.raises(AddressRefused):
            _request(server, "http://10.0.0.1/", resolve=numeric, loopback=True)


def test_name_is_resolved_once_and_connected_to_as_resolved() -> None:
    answers = [[PUBLIC], ["127.0.0.1"]]
    with peer(_ok()) as server:
        response = _request(server, "http://rebound.example:8080/a?b=c#d", resolve=lambda _host, _port: answers.pop(0))
        assert (response.content, server.connected, len(answers)) == (b"page", [(PUBLIC, 8080)], 1)
        assert server.requests[0].startswith(b"GET /a?b=c HTTP/1.1\r\nHost: rebound.example:8080\r\n")


def test_certificate_is_that_of_the_name(tmp_path: Path) -> None:
    import ssl

    certificate = certify("good.example", tmp_path)
    trusting = ssl.create_default_context(cafile=certificate.authority)
    names = _names(good=[PUBLIC], other=[PUBLIC])
    with peer(_ok(), tls=certificate.serving()) as server:
        assert _request(server, "https://good.example/", resolve=names, tls=trusting).content == b"page"
        assert server.connected == [(PUBLIC, 443)]
        for url, context in (
            ("https://other.example/", trusting),
            ("https://good.example/", ssl.create_default_context()),
        ):
            with pytest.raises(AddressFailed, match="has no valid certificate"):
                _request(server, url, resolve=names, tls=context)


@pytest.mark.parametrize(
    "url",
    [
        "http://good.example/",
        "file:///etc/passwd",
        "https://",
        "https://a:b@good.example/",
        "https://[",
        "https://x:99999/",
    ],
)
def test_only_https_without_credentials_is_requested_by_default(url: str) -> None:
    with peer(_ok()) as server:
        with pytest.raises(AddressRefused):
            _request(server, url, schemes=("https",))
        assert server.connected == []


def test_redirects_are_limited() -> None:
    with peer(_redirect("http://good.example/again")) as server:
        with pytest.raises(AddressRefused, match="redirects too often"):
            _request(server, "http://good.example/")
        assert len(server.connected) == 4
        with pytest.raises(AddressRefused, match=r"redirects$"):
            _request(server, "http://good.example/", redirects=0)
        assert len(server.connected) == 5


@pytest.mark.parametrize(
    "start",
    [b"HTTP/1.1 200 OK\r\nx: ", b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 999999\r\n\r\n", b""],
)
def test_peer_that_never_ends_is_left_at_the_deadline(start: bytes) -> None:
    with (
        peer(start, drips=True) as server,
        pytest.raises(AddressFailed, match=r"did not answer completely within 0\.5 s"),
    ):
        _request(server, "http://good.example/", seconds=0.5)


def test_name_that_is_never_resolved_is_left_at_the_deadline() -> None:
    never = threading.Event()
    with peer(_ok()) as server, pytest.raises(AddressFailed, match=r"within 0\.1 s"):
        _request(
            server, "http://good.example/", seconds=0.1, resolve=lambda _host, _port: [str(never.wait(CEILING_SECONDS))]
        )
    never.set()


@pytest.mark.parametrize(
    ("body", "headers"),
    [(b"x" * 101, ()), (gzip.compress(bytes(1 << 20)), ("content-encoding: gzip",))],
)
def test_size_is_limited_before_and_after_decompression(body: bytes, headers: tuple[str, ...]) -> None:
    with peer(_ok(body, *headers)) as server, pytest.raises(AddressFailed, match="is larger than"):
        _request(server, "http://good.example/", max_bytes=max(100, len(body) - 1) if not headers else 1 << 19)


@pytest.mark.parametrize("compressed", [False, True])
def test_body_of_exactly_the_limit_is_accepted(compressed: bool) -> None:
    body = b"x" * 1000
    encoded = gzip.compress(body) if compressed else body
    headers = ("content-encoding: gzip",) if compressed else ()
    with peer(_ok(encoded, *headers)) as server:
        assert _request(server, "http://good.example/", max_bytes=1000).content == body
        with pytest.raises(AddressFailed, match="is larger than"):
            _request(server, "http://good.example/", max_bytes=999)


def test_compressed_body_is_expanded_no_further_than_the_limit() -> None:
    body = gzip.compress(bytes(64 << 20))
    with peer(_ok(body, "content-encoding: gzip")) as server:
        tracemalloc.start()
        try:
            with pytest.raises(AddressFailed, match="is larger than 1 MiB"):
                _request(server, "http://good.example/", max_bytes=1 << 20)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak < 8 << 20


def test_name_without_an_address_is_no_success() -> None:
    def unknown(_host: str, _port: int) -> list[str]:
        raise OSError

    with peer(_ok()) as server:
        for resolver in (unknown, _names(good=[])):
            with pytest.raises(AddressFailed, match="name cannot be resolved"):
                _request(server, "http://good.example/", resolve=resolver)
        assert server.connected == []


def test_request_leaves_no_timer() -> None:
    with peer(_ok()) as server:
        before = {thread for thread in threading.enumerate() if isinstance(thread, threading.Timer)}
        _request(server, "http://good.example/")
        until(lambda: {each for each in threading.enumerate() if isinstance(each, threading.Timer)} <= before)


def test_response_without_a_content_type_is_refused_where_one_is_expected() -> None:
    with (
        peer(_ok()) as server,
        pytest.raises(AddressFailed, match="content type that is not accepted: none"),
    ):
        _request(server, "http://good.example/", content_types=("text/",))


def test_content_type_is_checked() -> None:
    with peer(_ok(b"MZ", "content-type: application/x-msdownload"), _ok(b"a", "content-type: Text/Plain")) as server:
        with pytest.raises(AddressFailed, match="content type that is not accepted: application/x-msdownload"):
            _request(server, "http://good.example/", content_types=("text/",))
        assert _request(server, "http://good.example/", content_types=("text/",)).content == b"a"


@pytest.mark.parametrize("encrypted", [False, True])
def test_response_of_a_configured_server_ends_at_the_deadline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, encrypted: bool
) -> None:
    """A server that sends a byte now and then keeps no caller waiting, over TLS neither."""
    tls = None
    if encrypted:
        certificate = certify("localhost", tmp_path)
        tls = certificate.serving()
        monkeypatch.setenv("AWS_CA_BUNDLE", str(certificate.authority))
    endless = b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n"
    with peer(endless, drips=True, tls=tls) as server, pytest.raises(ConnectionFailed):
        send_once("GET", f"{'https' if encrypted else 'http'}://localhost:{server.port}/", {}, b"", 0.5)


def test_response_of_a_configured_server_is_bounded() -> None:
    """A response of 256 KiB is read, a larger one refused."""
    with peer(_ok(b"x" * (1 << 18))) as server:
        assert len(send_once("GET", f"http://localhost:{server.port}/a?b", {}, b"", CEILING_SECONDS)[2]) == 1 << 18
        assert server.requests[0].startswith(b"GET /a?b HTTP/1.1\r\nhost: localhost:")
    chunk = b"20000\r\n" + b"x" * (1 << 17) + b"\r\n"
    chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + 2 * chunk + b"1\r\nx\r\n0\r\n\r\n"
    for response in (_ok(b"x" * ((1 << 18) + 1)), chunked):
        with peer(response) as server, pytest.raises(ConnectionFailed):
            send_once("GET", f"http://localhost:{server.port}/", {}, b"", CEILING_SECONDS)


@pytest.mark.parametrize("url", ["http://localhost:x/", "http://localhost:1/\u1ea3", "http://localhost:1/a b"])
def test_address_that_is_none_is_a_failed_connection(url: str) -> None:
    with pytest.raises(ConnectionFailed):
        send_once("GET", url, {}, b"", CEILING_SECONDS)
