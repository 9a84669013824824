"""What is on its way to one client: gathered, written together, and bounded."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable


class Flusher:
    """Writes once what a turn of the loop has gathered for many clients."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: list[Outbox] = []

    def add(self, outbox: Outbox) -> None:
        """Write this one's too."""
        if not self._waiting:
            self._loop.call_soon(self._flush)
        self._waiting.append(outbox)

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        for outbox in waiting:
            outbox.flush()


class Outbox:
    """Packets for one client; those that may be lost are refused while it does not read."""

    __slots__ = ("_drained", "_flusher", "_gathered", "_gathered_bytes", "_limit", "_paused", "_transport")

    def __init__(self, transport: asyncio.Transport, flusher: Flusher, limit: int, drained: Callable[[], None]) -> None:
        self._transport = transport
        self._drained = drained
        self._flusher = flusher
        self._limit = limit
        self._gathered: list[bytes] = []
        self._gathered_bytes = 0
        self._paused = False
        transport.set_write_buffer_limits(high=limit // 2)

    @property
    def full(self) -> bool:
        """Whether the client is too far behind to be sent what may be lost."""
        return self._paused or self._gathered_bytes >= self._limit

    def pause(self) -> None:
        """Heed the transport: the client does not read."""
        self._paused = True

    def resume(self) -> None:
        """Heed the transport: it reads again."""
        self._paused = False
        self._drained()

    def offer(self, data: bytes) -> bool:
        """Send a packet unless the client is too far behind."""
        if self._paused or self._gathered_bytes >= self._limit:
            return False
        self.send(data)
        return True

    def send(self, data: bytes) -> None:
        """Send a packet that answers one of the client's, and so is bounded by what it sends."""
        if not self._gathered:
            self._flusher.add(self)
        self._gathered.append(data)
        self._gathered_bytes += len(data)

    def flush(self) -> None:
        """Write what is gathered; where it was too much, and is gone at once, somebody waits to hear of it."""
        gathered = self._gathered
        if not gathered or self._transport.is_closing():
            return
        was_full = self._gathered_bytes >= self._limit
        self._gathered, self._gathered_bytes = [], 0
        self._transport.write(gathered[0] if len(gathered) == 1 else b"".join(gathered))
        if was_full and not self._paused:
            self._drained()
