"""A client's bounded send queue, which batches writes. The outbox of webhooks is in `shared/devices/webhooks.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable


class Outbox:
    """Packets for one client, written once per loop iteration; droppable packets are refused while it does not read."""

    __slots__ = ("_drained", "_limit", "_loop", "_packets", "_paused", "_size", "_transport")

    def __init__(
        self,
        transport: asyncio.Transport,
        loop: asyncio.AbstractEventLoop,
        limit: int,
        drained: Callable[[], None],
    ) -> None:
        self._transport = transport
        self._drained = drained
        self._loop = loop
        self._limit = limit
        self._packets: list[bytes] = []
        self._size = 0
        self._paused = False
        transport.set_write_buffer_limits(high=limit // 2)

    @property
    def full(self) -> bool:
        """True if the client is too far behind for droppable packets."""
        return self._paused or self._size >= self._limit

    def pause(self) -> None:
        """Pause, since the client does not read."""
        self._paused = True

    def resume(self) -> None:
        """Resume, since the client reads again."""
        self._paused = False
        self._drained()

    def send(self, data: bytes) -> None:
        """Send a packet without a check; responses are bounded by the client's own packets."""
        if not self._packets:
            self._loop.call_soon(self.flush)
        self._packets.append(data)
        self._size += len(data)

    def flush(self) -> None:
        """Write the batched packets. Call `drained` if the outbox was full and the write did not block."""
        packets = self._packets
        if not packets or self._transport.is_closing():
            return
        was_full = self._size >= self._limit
        self._packets, self._size = [], 0
        self._transport.write(packets[0] if len(packets) == 1 else b"".join(packets))
        if was_full and not self._paused:
            self._drained()
