"""HTTP/1.1 client of configured servers, with a connection pool.

It takes a tenth of boto3's time to be ready and per request: the standard library's client reads the headers of a
response with its parser of e-mails. Addresses that a caller chooses are for `PublicClient` of `public_address`.
"""

from __future__ import annotations

import math
import re
import select
import socket
import threading
import time
from collections import deque
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from http import HTTPStatus
from ssl import SSLContext, create_default_context
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from shared.platform.runtime import runtime

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_MAX_IDLE: Final = 100
_MAX_HEAD: Final = 65_536
_MAX_HEADERS: Final = 100
_RECEIVED: Final = 65_536
_STATUS: Final = re.compile(r"HTTP/1\.([01]) (\d\d\d)(?: .*)?")
_CHUNK_SIZE: Final = re.compile(r"([0-9A-Fa-f]{1,8})[ \t]*(?:;.*)?")
_CONNECT_SECONDS: Final = 3.0
"""The most for the connection of a single request."""


class ConnectionFailed(Exception):
    """No complete response was received."""


class ConnectionNotEstablished(ConnectionFailed):
    """No connection could be made, so the request was not sent."""


class ResponseTimeout(ConnectionFailed):
    """The request was sent, and no response came in time."""


class HttpClient:
    """Client of one server.

    A connection that was idle for `max_idle_seconds` is not reused: the server may just be closing it, and a request
    that must not be retried would be lost.
    """

    def __init__(
        self, url: str, *, connect_seconds: float, read_seconds: float, max_idle_seconds: float = math.inf
    ) -> None:
        self.url = url
        self._parts = urlsplit(url)
        self._connect_seconds, self._read_seconds = connect_seconds, read_seconds
        self._max_idle_seconds = max_idle_seconds
        self._idle: deque[tuple[socket.socket, float]] = deque()

    @property
    def authority(self) -> str:
        """The server's host and port, for the header `host`."""
        return self._parts.netloc or "localhost"

    @property
    def is_of_this_machine(self) -> bool:
        """True if only the holders of a Unix socket reach the server, which verifies no signature."""
        return self._parts.scheme in runtime.sockets

    def send(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Return status, headers by lower-case name, and body. Raise ConnectionFailed if the outcome is unknown.

        The target must be escaped.
        """
        connection = self.connect()
        reusable = False
        try:
            response = _exchange(connection, method, target, headers, body)
            reusable = response.is_reusable
        finally:
            if reusable and len(self._idle) < _MAX_IDLE:
                self._idle.append((connection, time.monotonic()))
            else:
                connection.close()
        return response.status, response.headers, response.content

    def close(self) -> None:
        """Close the idle connections."""
        while self._idle:
            self._idle.pop()[0].close()

    @cached_property
    def _tls(self) -> SSLContext:
        # One context for all connections: it reads every trusted certificate.
        context = create_default_context(cafile=runtime.environment.get("AWS_CA_BUNDLE") or None)
        context.set_alpn_protocols(["http/1.1"])
        return context

    def connect(self) -> socket.socket:
        """Return an idle connection or a new one. Raise ConnectionNotEstablished."""
        while self._idle:
            try:
                connection, since = self._idle.pop()
            except IndexError:
                break  # another thread was first
            if time.monotonic() - since < self._max_idle_seconds and not _is_stale(connection):
                return connection
            connection.close()
        try:
            connection = self._open()
        except OSError as error:
            raise ConnectionNotEstablished(type(error).__name__) from None
        connection.settimeout(self._read_seconds)
        return connection

    def _open(self) -> socket.socket:
        scheme, host = self._parts.scheme, self._parts.hostname or "localhost"
        if connect := runtime.sockets.get(scheme):
            # The server is on this machine: only a busy processor delays the connection.
            return connect(unquote(self._parts.path), self._read_seconds)
        is_tls = scheme == "https"
        address = host, self._parts.port or (443 if is_tls else 80)
        connection = socket.create_connection(address, self._connect_seconds)
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return self._tls.wrap_socket(connection, server_hostname=host) if is_tls else connection
        except OSError:
            connection.close()
            raise


def send_once(  # noqa: PLR0913, PLR0917 - each is a part of the request or its limit
    method: str, url: str, headers: Mapping[str, str], body: bytes, seconds: float, max_bytes: int = 256 * 1024
) -> tuple[int, Mapping[str, str], bytes]:
    """Send one request on a connection of its own, as `HttpClient.send` does, with a limit of time and of size."""
    try:
        parts = urlsplit(url)
        origin, connect_seconds = f"{parts.scheme}://{parts.netloc}", min(_CONNECT_SECONDS, seconds)
        client = HttpClient(origin, connect_seconds=connect_seconds, read_seconds=seconds)
        with closing(client.connect()) as connection, shut_down_at(time.monotonic() + seconds, connection):
            target = parts._replace(scheme="", netloc="", fragment="").geturl() or "/"
            headers = {"host": client.authority, **headers}
            response = _exchange(connection, method, target, headers, body, max_bytes)
    except ValueError:
        raise ConnectionNotEstablished("the address is not valid") from None
    return response.status, response.headers, response.content


@contextmanager
def shut_down_at(deadline: float, connection: socket.socket) -> Iterator[threading.Event]:
    """Shut a connection down at the deadline, and set the event. A read's own time-out starts again with each byte."""
    expired = threading.Event()

    def shut_down() -> None:
        expired.set()
        with suppress(OSError):
            socket.socket.shutdown(connection, socket.SHUT_RDWR)  # below TLS, which another thread reads

    timer = threading.Timer(deadline - time.monotonic(), shut_down)
    timer.daemon = True
    timer.start()
    try:
        yield expired
    finally:
        timer.cancel()


@dataclass(frozen=True, slots=True)
class _Response:
    status: int
    headers: dict[str, str]
    """By lower-case name. Of several fields of one name, the last one."""
    content: bytes
    is_reusable: bool
    """True if the next request can be sent on the same connection."""


class _NoResponse(Exception):
    """A response that is incomplete, or no response."""


class _Received:
    """The bytes that a connection has received and that are not yet read."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._bytes = b""
        self._start = 0

    @property
    def is_empty(self) -> bool:
        """True if nothing has been received after what was read."""
        return self._start == len(self._bytes)

    def line(self) -> str:
        """Return the text before the next line break, and skip it."""
        return self._until(b"\r\n")

    def lines(self) -> list[str]:
        """Return the lines before the next empty line, and skip that."""
        # A line break before the first line stands for the one of the line that was read before.
        self._start -= 2
        return self._until(b"\r\n\r\n").split("\r\n")[1:]

    def _until(self, end: bytes) -> str:
        while (found := self._bytes.find(end, self._start)) < 0:
            if len(self._bytes) - self._start > _MAX_HEAD:
                raise _NoResponse
            self._bytes, self._start = self._bytes[self._start :] + self._receive(), 0
        text = self._bytes[self._start : found].decode("latin-1")
        self._start = found + len(end)
        return text

    def exactly(self, size: int) -> bytes:
        """Return the next `size` bytes."""
        part = self._bytes[self._start : self._start + size]
        self._start += len(part)
        if len(part) == size:
            return part
        parts, missing = [part], size - len(part)
        while missing:
            received = self._receive()
            parts.append(received[:missing])
            self._bytes, self._start = received, len(parts[-1])
            missing -= len(parts[-1])
        return b"".join(parts)

    def _receive(self) -> bytes:
        received = self._connection.recv(_RECEIVED)
        if not received:
            raise _NoResponse
        return received


def _exchange(  # noqa: PLR0913, PLR0917 - each is a part of the request or its limit
    connection: socket.socket,
    method: str,
    target: str,
    headers: Mapping[str, str],
    body: bytes,
    max_bytes: float = math.inf,
) -> _Response:
    """Send one request. Return the response, or raise ConnectionFailed if it may be incomplete."""
    start = f"{method} {target} HTTP/1.1"
    lines = [f"{name}: {value}" for name, value in headers.items()]
    if " " in target or not all(line.isprintable() for line in (start, *lines)):
        raise ValueError("the target must be escaped, and each header must be one line")
    head = "\r\n".join([start, *lines, f"content-length: {len(body)}", "", ""])
    try:
        connection.sendall(head.encode("latin-1") + body)
        return _read_response(_Received(connection), max_bytes)
    except TimeoutError as error:
        raise ResponseTimeout(type(error).__name__) from None
    except (OSError, _NoResponse) as error:
        raise ConnectionFailed(type(error).__name__) from None


def _read_response(received: _Received, max_bytes: float) -> _Response:
    """Read a response whose end is definite. Raise _NoResponse for any other."""
    while True:
        status_line = _STATUS.fullmatch(received.line())
        if not status_line:
            raise _NoResponse
        status, headers = int(status_line[2]), _read_headers(received)
        if status != HTTPStatus.CONTINUE:
            break
    if status < HTTPStatus.OK:
        raise _NoResponse
    if status in (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED):
        content = b""
    elif "transfer-encoding" in headers:
        content = _read_chunks(received, headers["transfer-encoding"], max_bytes)
    else:
        length = headers.get("content-length", "")
        if not (length.isascii() and length.isdecimal()) or int(length) > max_bytes:
            raise _NoResponse
        content = received.exactly(int(length))
    is_closed = status_line[1] == "0" or "close" in headers.get("connection", "").lower()
    return _Response(status, headers, content, is_reusable=received.is_empty and not is_closed)


def _read_headers(received: _Received) -> dict[str, str]:
    headers: dict[str, str] = {}
    lines = received.lines()
    if len(lines) > _MAX_HEADERS:
        raise _NoResponse
    for line in lines:
        name, colon, value = line.partition(":")
        name = name.lower()
        if not colon or name.strip() != name or (name == "content-length" and name in headers):
            raise _NoResponse
        headers[name] = value.strip()
    return headers


def _read_chunks(received: _Received, coding: str, max_bytes: float) -> bytes:
    if coding.lower() != "chunked":
        raise _NoResponse
    chunks, total = [], 0
    while True:
        size = _CHUNK_SIZE.fullmatch(received.line())
        if not size:
            raise _NoResponse
        length = int(size[1], 16)
        total += length
        if total > max_bytes:
            raise _NoResponse
        if not length:
            break
        chunks.append(received.exactly(length))
        if received.line():
            raise _NoResponse
    _read_headers(received)  # the trailer
    return b"".join(chunks)


def _is_stale(connection: socket.socket) -> bool:
    """Return True if there is something to read on an idle connection: its end, or surplus bytes."""
    if not hasattr(select, "poll"):
        return True  # Windows has none: each request has a connection of its own
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(0))
