"""One connection to an HTTP/1.1 server, for one request after the other: what is heard is parsed in C."""

from __future__ import annotations

import select
import socket
from typing import TYPE_CHECKING, Final

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

if TYPE_CHECKING:
    from collections.abc import Mapping
    from ssl import SSLContext
    from urllib.parse import SplitResult

_READ_BYTES: Final = 65_536
_MAX_HEADER_BYTES: Final = 65_536


class InvalidResponse(Exception):
    """What came is no whole answer."""


class HttpConnection:
    """A connection to the host of an address; `goes_on` says whether another request may follow."""

    def __init__(
        self, address: SplitResult, tls: SSLContext | None, *, connect_seconds: float, read_seconds: float
    ) -> None:
        host = address.hostname or ""
        port = address.port or (443 if tls else 80)
        self._socket = socket.create_connection((host, port), timeout=connect_seconds)
        try:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if tls:
                self._socket = tls.wrap_socket(self._socket, server_hostname=host)
        except OSError:
            self._socket.close()
            raise
        self._socket.settimeout(read_seconds)
        self.goes_on = True

    def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes
    ) -> tuple[int, dict[str, str], bytes]:
        """Status, headers by their names in small letters, and body of what the server answers."""
        self.goes_on = False  # until a whole answer says so
        lines = [f"{name}: {value}" for name, value in headers.items()]
        start = f"{method} {target} HTTP/1.1"
        if not all(line.isprintable() for line in (start, *lines)) or " " in target:
            raise ValueError("a request's address and headers are of one line each")
        head = "\r\n".join([start, *lines, f"content-length: {len(body)}", "", ""])
        self._socket.sendall(head.encode("latin-1") + body)
        answer = _ResponseParser()
        try:
            self._read_response(answer)
        finally:
            # It holds who hears it: megabytes would wait for whoever collects garbage.
            del answer.parser
        self.goes_on = answer.goes_on
        return answer.status, answer.headers, b"".join(answer.body)

    def _read_response(self, answer: _ResponseParser) -> None:
        while not answer.is_whole:
            received = self._socket.recv(_READ_BYTES)
            if not received:
                raise InvalidResponse("the answer ended before it was whole")
            try:
                answer.parser.feed_data(received)
            except (HttpParserError, HttpParserUpgrade) as error:
                if (cause := error.__context__) and not isinstance(cause, Exception):
                    raise cause from None  # an interrupt, which the parser took for a fault of whoever hears it
                raise InvalidResponse(type(error).__name__) from None
            answer.bound(len(received))

    def is_closed_by_peer(self) -> bool:
        """Whether the other side has ended it meanwhile: there is something to read where nothing was asked."""
        waiting = select.poll()
        waiting.register(self._socket, select.POLLIN)
        return bool(waiting.poll(0))

    def close(self) -> None:
        """End it."""
        self._socket.close()


class _ResponseParser:
    """Hears what the parser finds."""

    def __init__(self) -> None:
        self.parser = HttpResponseParser(self)
        self.headers: dict[str, str] = {}
        self.body: list[bytes] = []
        self.status = 0
        self.goes_on = False
        self.is_whole = False
        self._heard = 0

    def on_message_begin(self) -> None:
        if self.is_whole:
            raise InvalidResponse("more came than was asked for")
        self.headers, self.status = {}, 0  # what was said on the way (1xx) is not the answer's

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self.status:  # else it comes after the body
            self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self.status, self.goes_on = self.parser.get_status_code(), self.parser.should_keep_alive()

    def on_body(self, part: bytes) -> None:
        self.body.append(part)

    def on_message_complete(self) -> None:
        self.is_whole = self.status >= 200

    def bound(self, received: int) -> None:
        """Hear no headers without end."""
        self._heard += received
        if not self.status and self._heard > _MAX_HEADER_BYTES:
            raise InvalidResponse("its headers are too long")
