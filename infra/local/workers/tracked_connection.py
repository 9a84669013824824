"""A worker's HTTP connection, of whose calls a record is kept."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from infra.local.gateway import Connection

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import Scope

    from infra.local.workers.connection_record import ConnectionRecord

_MAX_HELD_BYTES: Final = 65_536
_NOTED_HEADERS: Final = (b"x-correlation-id", b"content-type")


class TrackedConnection(Connection):
    """The steps of a connection's calls, written to its record. A response is sent as one piece if it is short."""

    def __init__(self, record: ConnectionRecord) -> None:
        self.record: ConnectionRecord | None = record
        """None when the connection is lost: its record may be another one's."""
        self.transport: asyncio.Transport
        self._held: list[bytes] | None = None
        self._held_bytes = 0

    def note(self, scope: Scope, body: bytes) -> None:
        """Note what the error format of the request's endpoint depends on."""
        if self.record:
            headers = [b"%b: %b\n" % each for each in scope["headers"] if each[0] in _NOTED_HEADERS]
            start = b"%b %b\n" % (scope["method"].encode(), scope["raw_path"])
            self.record.note(b"".join([start, *headers, b"\n"]), body)

    def begin(self) -> None:
        """Begin the call."""
        if self.record:
            self.record.begin()

    def answer(self) -> None:
        """Begin the response."""
        self._held, self._held_bytes = [], 0

    def end(self) -> None:
        """Send the response, and end it."""
        held, self._held = self._held, None
        if self.record:
            data = b"".join(held or [])
            if data:
                self.record.write(len(data))
            self.record.answer()
            if data:
                self.transport.write(data)

    def write(self, data: bytes) -> None:
        """Write a part of a response, or hold it until the rest is there."""
        if self._held is not None:
            self._held.append(data)
            self._held_bytes += len(data)
            if self._held_bytes <= _MAX_HELD_BYTES:
                return
            data = self._release()
        if self.record:
            self.record.write(len(data))
        self.transport.write(data)

    def close(self) -> None:
        """Close the connection when everything is sent."""
        if self._held:
            data = self._release()
            if self.record:
                self.record.write(len(data))
            self.transport.write(data)
        if self.record:
            self.record.close()
        self.transport.close()

    def _release(self) -> bytes:
        data = b"".join(self._held or [])
        self._held = None
        return data


class TrackedTransport(asyncio.Transport):
    """The transport as the HTTP protocol has it."""

    def __init__(self, transport: asyncio.Transport, connection: TrackedConnection) -> None:
        super().__init__()
        self._transport = transport
        self.write = connection.write  # type: ignore[assignment]
        self.close = connection.close  # type: ignore[method-assign]
        self.is_closing = transport.is_closing  # type: ignore[method-assign]
        self.pause_reading = transport.pause_reading  # type: ignore[method-assign]
        self.resume_reading = transport.resume_reading  # type: ignore[method-assign]
        self.get_extra_info = transport.get_extra_info  # type: ignore[method-assign]


class TrackedProtocol(asyncio.Protocol):
    """An HTTP protocol whose reading and writing is recorded. `lost` is called at the connection's end."""

    def __init__(self, protocol: asyncio.Protocol, connection: TrackedConnection, lost: Callable[[], None]) -> None:
        self._protocol = protocol
        self._connection = connection
        self._lost = lost
        self.eof_received = protocol.eof_received  # type: ignore[method-assign]
        self.pause_writing = protocol.pause_writing  # type: ignore[method-assign]
        self.resume_writing = protocol.resume_writing  # type: ignore[method-assign]

    def connection_made(self, transport: Any) -> None:
        """Begin."""
        self._connection.transport = transport
        self._protocol.connection_made(TrackedTransport(transport, self._connection))

    def data_received(self, data: bytes) -> None:
        """Record that a request was read, before it is parsed."""
        if self._connection.record:
            self._connection.record.read(len(data))
        self._protocol.data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._connection.record = None
        self._protocol.connection_lost(exc)
        self._lost()
