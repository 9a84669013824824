"""The index process as a worker reaches it, by connections of its own that the owner hands out."""

from __future__ import annotations

import queue
import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from infra.local.search_engine.index_process import BROKEN, CONNECTIONS, IndexOperations, MissingIndex, exchange
from shared.platform.telemetry import logger
from shared.rpc.errors import Unavailable

if TYPE_CHECKING:
    from pathlib import Path

    from infra.local.search_engine.index_process import Connection
    from infra.local.workers.owned_functions import OwnerClient
    from shared.search.embedding.models import Space

_OPEN_SECONDS: Final = 26.0


class IndexConnections(IndexOperations):
    """The store of the one index process. The owner opens it, and starts it again when it has ended.

    Raise what the owner raises if it cannot open it.
    """

    def __init__(self, owner: OwnerClient, space: Space, folder: Path) -> None:
        self._owner = owner
        self._space = space
        self._folder = folder
        self._free: queue.LifoQueue[tuple[socket.socket, Connection]] = queue.LifoQueue()
        self._turns = threading.BoundedSemaphore(CONNECTIONS - 1)
        if channel := self._take():
            self._free.put(channel)

    def close(self) -> None:
        """Do nothing: the index is the owner's."""

    def _call(self, operation: str, *arguments: Any) -> Any:
        with self._turns:
            channel = self._take()
            if channel is None:
                return MissingIndex().call(operation, arguments)
            try:
                result, error = exchange(channel[1], operation, arguments)
            except BROKEN:
                self._drop(channel)
                logger.warning("index", extra={"operation": operation, "failure": "The index is not answering."})
                raise Unavailable("The index is not answering.") from None
            except BaseException:
                self._drop(channel)  # a response that was not read would be taken for the next call's
                raise
            self._free.put(channel)
        if error:
            raise error
        return result

    def _take(self) -> tuple[socket.socket, Connection] | None:
        """Return a connection to the running process, None if the index was not created because the disk is full."""
        while not self._free.empty():
            try:
                channel = self._free.get_nowait()
            except queue.Empty:
                break
            if _is_open(channel[0]):
                return channel
            self._drop(channel)
        try:
            connection = self._owner.connect_to_index(self._space, self._folder, _OPEN_SECONDS)
        except TimeoutError:
            raise Unavailable("The index is not answering.") from None
        return (connection, connection.makefile("rwb")) if connection else None

    @staticmethod
    def _drop(channel: tuple[socket.socket, Connection]) -> None:
        for each in channel:
            with suppress(OSError):  # a request that was not sent
                each.close()


def _is_open(connection: socket.socket) -> bool:
    try:
        return bool(connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT))
    except BlockingIOError:
        return True
    except OSError:
        return False
