"""The process that runs an embedded index for another one. It is started by `index_process`.

Each connection to its parent has one request at a time; requests and responses are pickled. The process ends with its
parent: a connection ends with the last process that has it open.
"""

from __future__ import annotations

import os
import pickle
import socket
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from infra.local.search_engine.embedded import EmbeddedVectorStore
from infra.local.search_engine.errors import FolderLocked, IndexDamaged
from infra.local.search_engine.index_process import EngineError
from shared.platform.config import ConfigurationError
from shared.rpc.errors import Unavailable, disk_full

if TYPE_CHECKING:
    from infra.local.search_engine.index_process import Connection

_WRITES: Final = ("write", "set_fields", "erase")
_PASSED_ON: Final = (ConfigurationError, FolderLocked, IndexDamaged, Unavailable)


def main() -> None:
    """Open the index, then run operations until the parent closes it or ends."""
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    inherited, space, folder, lock_seconds = pickle.load(sys.stdin.buffer)  # noqa: S301 - written by the parent process
    control, *connections = [_connection(each) for each in inherited[:-1]]
    try:
        store = EmbeddedVectorStore(space, folder, lock_seconds)
    except BaseException as error:  # the engine's panics are no Exception
        _respond(control, error=error)
        return
    for each in connections:
        threading.Thread(target=_serve, args=[store, each], daemon=True).start()
    threading.Thread(target=_serve_others, args=[store, inherited[-1]], daemon=True).start()
    try:
        _respond(control)
        pickle.load(control)  # noqa: S301 - written by the parent process
    except (EOFError, OSError):
        os._exit(0)  # the parent was killed; what was acknowledged is in the engine's log
    store.close()
    _respond(control)
    os._exit(0)


def _socket(inherited: Any) -> socket.socket:
    if sys.platform == "win32":
        return socket.fromshare(inherited)
    return socket.socket(fileno=inherited)


def _connection(inherited: Any) -> Connection:
    return _socket(inherited).makefile("rwb")


def _serve_others(store: EmbeddedVectorStore, inherited: Any) -> None:
    """Serve the connections of other processes, which the parent passes on. There are none on Windows."""
    passing = _socket(inherited)
    with suppress(OSError, AttributeError):
        while descriptors := socket.recv_fds(passing, 1, 1)[1]:
            connection = _connection(descriptors[0])
            threading.Thread(target=_serve, args=[store, connection], daemon=True).start()


def _respond(connection: Connection, result: Any = None, error: BaseException | None = None) -> None:
    if error and not isinstance(error, _PASSED_ON):
        error = EngineError(f"{type(error).__name__}: {error}")
    connection.write(pickle.dumps((result, error), pickle.HIGHEST_PROTOCOL))
    connection.flush()


def _serve(store: EmbeddedVectorStore, connection: Connection) -> None:
    """Run the operations of one connection until it ends."""
    with suppress(EOFError, OSError):
        while True:
            operation, arguments = pickle.load(connection)  # noqa: S301 - written by the parent process
            try:
                result = getattr(store, operation)(*arguments)
            except BaseException as error:  # the engine's panics are no Exception
                _respond(connection, error=disk_full() if "No space left" in str(error) else error)
                if operation in _WRITES and not isinstance(error, Unavailable):
                    # The engine applies its log again when it is opened.
                    os._exit(1)
            else:
                _respond(connection, result)


if __name__ == "__main__":
    main()
