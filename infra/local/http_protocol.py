"""uvicorn's HTTP protocol with limits for requests that are slow, endless, or want to become another protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Sequence

    from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

MAX_HEADER_BYTES: Final = 10_240
"""API Gateway's limit of the request line and all headers."""
_RECEIVE_SECONDS: Final = 28.0
_REFUSAL: Final = b"HTTP/1.1 %b\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
_TOO_LARGE: Final = _REFUSAL % b"431 Request Header Fields Too Large"
_TIMEOUT: Final = _REFUSAL % b"408 Request Timeout"
_NO_LENGTH: Final = _REFUSAL % b"400 Bad Request"
_UNKNOWN_CODING: Final = _REFUSAL % b"501 Not Implemented"


class BoundedHttpProtocol(HttpToolsProtocol):
    """One connection. A request must arrive within `receive_seconds`, and its headers within API Gateway's limit."""

    receive_seconds: float = _RECEIVE_SECONDS

    _deadline: asyncio.TimerHandle | None = None
    _header_bytes: int | None = None
    """The bytes of a request whose headers are not complete, None between requests."""
    _chunk_bytes = 0

    def connection_made(self, transport: Any) -> None:
        """Expect the first request."""
        super().connection_made(transport)
        self._expect_request()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the deadline."""
        self._cancel_deadline()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse the data. Refuse headers that are too long, also if they never end."""
        was_reading_headers = self._header_bytes is not None
        self._chunk_bytes = len(data)
        super().data_received(data)
        if self._header_bytes is not None:
            self._header_bytes += len(data) if was_reading_headers else 0
            if self._header_bytes > MAX_HEADER_BYTES:
                self._close(_TOO_LARGE)

    def on_message_begin(self) -> None:
        """Start the deadline of this request."""
        super().on_message_begin()
        self._header_bytes = self._chunk_bytes
        self._expect_request()

    def on_headers_complete(self) -> None:
        """Start the request unless its headers are too long, or its body has a coding other than chunked."""
        self._header_bytes = None
        if len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers) > MAX_HEADER_BYTES:
            self._close(_TOO_LARGE)
        elif refusal := _coding_refusal(self.headers):
            self._close(refusal)
        else:
            super().on_headers_complete()

    def on_message_complete(self) -> None:
        """End the deadline: the rest is the server's time."""
        self._cancel_deadline()
        self._chunk_bytes = 0  # the rest of this chunk is another request's
        if not self.transport.is_closing():
            super().on_message_complete()

    def on_body(self, body: bytes) -> None:
        """Take a part of the body."""
        if not self.transport.is_closing():
            super().on_body(body)

    def _unsupported_upgrade_warning(self) -> None:
        """Answer the request as if it did not ask for an upgrade, without a warning in the log."""

    def _expect_request(self) -> None:
        self._cancel_deadline()
        self._deadline = self.loop.call_later(self.receive_seconds, self._expire)

    def _cancel_deadline(self) -> None:
        if self._deadline:
            self._deadline.cancel()
            self._deadline = None

    def _expire(self) -> None:
        if self.flow.read_paused:
            self._expect_request()  # the client waits for the server
        else:
            self._close(_TIMEOUT)

    def _close(self, response: bytes) -> None:
        if not self.transport.is_closing():
            cycle = cast("RequestResponseCycle | None", self.cycle)
            if cycle is None or cycle.response_complete:
                self.transport.write(response)
            self.transport.close()


def _coding_refusal(headers: Sequence[tuple[bytes, bytes]]) -> bytes | None:
    """Return the response to transfer codings that are not understood, or that leave the body's end unknown.

    RFC 9112, sections 6.1 and 6.3. The parser only looks for chunked at the end.
    """
    fields = [value for name, value in headers if name == b"transfer-encoding"]
    codings = [each.strip().lower() for each in b",".join(fields).split(b",")] if fields else []
    if codings in ([], [b"chunked"]):
        return None
    return _NO_LENGTH if codings[-1] != b"chunked" or b"chunked" in codings[:-1] else _UNKNOWN_CODING
