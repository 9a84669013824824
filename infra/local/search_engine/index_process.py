"""Qdrant's engine in a process of its own, which is restarted when it ends.

The engine writes to mapped files: on a full disk, the operating system kills the process that does so.
"""

from __future__ import annotations

import errno
import pickle
import queue
import socket
import subprocess
import sys
import threading
import time
from abc import ABC, abstractmethod
from array import array
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from infra.local.free_space import is_full
from infra.local.search_engine.errors import FolderLocked, IndexDamaged
from shared.platform.python_process import module_command
from shared.platform.telemetry import logger
from shared.rpc.errors import Unavailable, disk_full

if TYPE_CHECKING:
    from collections.abc import Sequence
    from io import BufferedRWPair
    from pathlib import Path

    from shared.search.embedding.models import Space
    from shared.search.store import Point, Scope, VectorQuery

    Connection = BufferedRWPair[Any, Any]

CONNECTIONS: Final = 16
"""The calls of a process that run at the same time, and one for its control."""
BROKEN: Final = (EOFError, OSError, pickle.UnpicklingError)
_RETRY_SECONDS: Final = 1.0
_CLOSE_SECONDS: Final = 30
_LOCK_SECONDS: Final = 10
"""A child process whose parent was killed holds the lock until it has noticed."""


class EngineError(Exception):
    """The engine failed in an operation."""


def open_index(space: Space, folder: Path) -> IndexProcess:
    """Open the index of `folder`. Raise `Unavailable` if it cannot be read now, or is damaged."""
    try:
        return IndexProcess(space, folder)
    except IndexDamaged as error:
        logger.error("index", extra={"failure": f"{error}; stop 'kho serve', and run 'kho reindex'"})
        raise Unavailable("The index is damaged.", guidance="Run 'kho reindex' while the server is stopped.") from error
    except Unavailable as error:
        logger.warning("index", extra={"operation": "open", "failure": f"{folder}: {error.message}"})
        raise


def is_readable(space: Space, folder: Path) -> bool:
    """Return False if there is an index in `folder` that cannot be read."""
    if not (folder / "shard").exists():
        return True
    try:
        store = IndexProcess(space, folder)
        try:
            store.documents()
        finally:
            store.close()
    except (IndexDamaged, EngineError):
        return False
    return True


class IndexOperations(ABC):
    """The operations of a store that another process runs."""

    def write(self, points: Sequence[Point], version: int) -> None:
        """Upsert `points` at `version`, skipping ids stored at a newer version."""
        packed = [replace(each, meaning=_packed(each.meaning), parts=_packed(each.parts)) for each in points]
        self._call("write", packed, version)

    def set_fields(self, scope: Scope, fields: dict[str, Any]) -> None:
        """Set these fields of the payloads of the points of `scope`."""
        self._call("set_fields", scope, fields)

    def erase(self, scope: Scope) -> None:
        """Delete the points of `scope`."""
        self._call("erase", scope)

    def read(self, ids: Sequence[str], fields: Sequence[str] = ()) -> dict[str, dict[str, Any]]:
        """Return the payloads of the stored `ids`, or only these fields of them."""
        payloads: dict[str, dict[str, Any]] = self._call("read", ids, fields)
        return payloads

    def terms(self, ids: Sequence[str], numbers: Sequence[int] | None = None) -> dict[str, dict[int, float]]:
        """Return the term weights of the stored `ids`, or only those of the terms `numbers`."""
        weights: dict[str, dict[int, float]] = self._call("terms", ids, numbers)
        return weights

    def read_with_terms(
        self, ids: Sequence[str], numbers: Sequence[int]
    ) -> dict[str, tuple[dict[str, Any], dict[int, float]]]:
        """Return the payloads of the stored `ids`, and their weights of the terms `numbers`."""
        records: dict[str, tuple[dict[str, Any], dict[int, float]]] = self._call("read_with_terms", ids, numbers)
        return records

    def count(self, scope: Scope) -> int:
        """Return the number of points in `scope`."""
        count: int = self._call("count", scope)
        return count

    def count_documents(self) -> int:
        """Return the number of documents that the index knows, of all tenants, deleted ones included."""
        count: int = self._call("count_documents")
        return count

    def documents(self, tenant_id: str = "") -> set[Scope]:
        """Return the documents that have points, of one tenant or of all."""
        documents: set[Scope] = self._call("documents", tenant_id)
        return documents

    def latest(self, scope: Scope, limit: int) -> list[dict[str, Any]]:
        """Return the payloads of the points of `scope` with the latest times `at`, latest first."""
        payloads: list[dict[str, Any]] = self._call("latest", scope, limit)
        return payloads

    def search(self, queries: Sequence[VectorQuery]) -> list[dict[str, float]]:
        """Return for each query the ids found, best first, with their scores."""
        packed = [replace(each, near=_packed(each.near)) if isinstance(each.near, list) else each for each in queries]
        results: list[dict[str, float]] = self._call("search", packed)
        return results

    @abstractmethod
    def _call(self, operation: str, *arguments: Any) -> Any:
        """Run one operation there."""


class IndexProcess(IndexOperations):
    """The store of one folder, run by a child process. Raise what the child raises if it cannot open the folder."""

    def __init__(self, space: Space, folder: Path) -> None:
        self._space = space
        self._folder = folder
        self._starting = threading.Lock()
        self._closed = False
        self._retry_at = 0.0
        self._engine = self._start()

    def connect(self) -> socket.socket | None:
        """Return a connection for another process, None if the index was not created because the disk is full."""
        try:
            return self._running().connect()
        except _EngineEnded:
            raise Unavailable("The index is not answering.") from None

    def close(self) -> None:
        """Close the store. Everything written is kept; calls in progress get `Unavailable`."""
        with self._starting:
            if not self._closed:
                self._closed = True
                self._engine.close()

    def _call(self, operation: str, *arguments: Any) -> Any:
        try:
            return self._running().call(operation, arguments)
        except (EngineError, _EngineEnded, Unavailable) as error:
            if self._closed:
                raise Unavailable("The index is closed.") from None
            if isinstance(error, EngineError):
                raise
            failure = error if isinstance(error, Unavailable) else Unavailable("The index is not answering.")
            logger.warning("index", extra={"operation": operation, "failure": f"{self._folder}: {failure.message}"})
            raise failure from None

    def _running(self) -> _Engine | MissingIndex:
        """Return the engine. Restart it if it has ended."""
        with self._starting:
            if self._closed or self._engine.is_running:
                return self._engine
            if isinstance(self._engine, _Engine):
                if time.monotonic() < self._retry_at:
                    raise Unavailable("The index is restarting.")
                logger.warning("index", extra={"failure": f"the engine ended with code {self._engine.exit_code}"})
                self._engine.disconnect()
            try:
                self._engine = self._start()
            except (FolderLocked, IndexDamaged) as error:
                raise Unavailable("The index is not answering.") from error
            finally:
                self._retry_at = time.monotonic() + _RETRY_SECONDS
            return self._engine

    def _start(self) -> _Engine | MissingIndex:
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            if error.errno == errno.ENOSPC:
                return MissingIndex()
            raise
        if is_full(self._folder) and not (self._folder / "shard").exists():
            return MissingIndex()
        engine = _Engine(self._space, self._folder)
        try:
            engine.wait_until_open()
        except _EngineEnded:
            if is_full(self._folder):
                raise disk_full() from None
            raise IndexDamaged(f"the index in {self._folder} is damaged") from None
        return engine


class _EngineEnded(Exception):
    """The engine's process ended before it answered."""


class MissingIndex:
    """An index that was not created yet because the disk is full. It holds nothing and takes nothing."""

    is_running = False

    def connect(self) -> None:
        """Return no connection."""

    def call(self, operation: str, arguments: Sequence[Any]) -> Any:
        """Return what the operation finds in an empty index. Refuse writes."""
        match operation:
            case "write":
                raise disk_full()
            case "latest":
                return []
            case "count" | "count_documents":
                return 0
            case "documents":
                return set()
            case "search":
                return [{} for _ in arguments[0]]
            case _:
                return {}

    def close(self) -> None:
        """Do nothing: there is no process."""


class _Engine:
    """One run of the child process. Each call has a connection to itself: none waits for another thread."""

    def __init__(self, space: Space, folder: Path) -> None:
        pairs = [socket.socketpair() for _ in range(CONNECTIONS + 1)]
        theirs = [each for _, each in pairs]
        self._process = subprocess.Popen(  # noqa: S603 - our own words only
            module_command("infra.local.search_engine.engine_process"),
            stdin=subprocess.PIPE,
            pass_fds=[] if sys.platform == "win32" else [each.fileno() for each in theirs],
            # A session of its own, so that the terminal's Ctrl-C does not stop it: requests in progress need it.
            start_new_session=True,
        )
        inherited: list[int] | list[bytes]
        if sys.platform == "win32":
            inherited = [each.share(self._process.pid) for each in theirs]
        else:
            inherited = [each.fileno() for each in theirs]
        assert self._process.stdin
        with suppress(OSError), self._process.stdin as opening:  # if it has ended, the first response is missing
            opening.write(pickle.dumps((inherited, space, str(folder), _LOCK_SECONDS)))
        self._free: queue.LifoQueue[Connection] = queue.LifoQueue()
        self._passing = pairs.pop()[0]
        theirs[-1].close()
        self._connections: list[Connection] = [ours.makefile("rwb") for ours, _ in pairs]
        self._control, *others = self._connections
        for each in others:
            self._free.put(each)
        for pair in pairs:
            for end in pair:
                end.close()

    @property
    def is_running(self) -> bool:
        """True until the process ends."""
        return self._process.poll() is None

    @property
    def exit_code(self) -> int:
        """The exit code of the process, which has ended."""
        return self._process.wait()

    def wait_until_open(self) -> None:
        """Raise the error of opening the index, if there is one."""
        try:
            self._exchange(self._control)
        except BaseException:
            self._process.wait()
            self.disconnect()
            raise

    def call(self, operation: str, arguments: Sequence[Any]) -> Any:
        """Run one operation."""
        connection = self._free.get()
        try:
            return self._exchange(connection, operation, arguments)
        finally:
            self._free.put(connection)

    def connect(self) -> socket.socket:
        """Return one more connection to the process, for another process."""
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                socket.send_fds(self._passing, [b"\0"], [theirs.fileno()])
            except OSError:
                ours.close()
                raise _EngineEnded from None
        return ours

    def close(self) -> None:
        """Close the index and end the process."""
        with suppress(_EngineEnded, EngineError):
            self._exchange(self._control, "close", ())
        try:
            self._process.wait(_CLOSE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self.disconnect()

    def disconnect(self) -> None:
        """Close the connections to the process, which has ended."""
        self._passing.close()
        for each in self._connections:
            with suppress(OSError):  # a request that was not sent
                each.close()

    def _exchange(self, connection: Connection, *request: Any) -> Any:
        """Send a request, if there is one, and return the response."""
        try:
            result, error = exchange(connection, *request)
        except BROKEN:
            self._process.wait()
            raise _EngineEnded from None
        except BaseException:
            # A response that was not read would be taken for the next call's.
            self._process.kill()
            if connection.closed:
                raise _EngineEnded from None
            raise
        if error:
            raise error
        return result


def exchange(connection: Connection, *request: Any) -> Any:
    """Send a request, if there is one. Return the response: a result and an error. Raise one of `BROKEN` without it."""
    if request:
        connection.write(pickle.dumps(request, pickle.HIGHEST_PROTOCOL))
        connection.flush()
    return pickle.load(connection)  # noqa: S301 - written by the child process


def _packed(vectors: Any) -> Any:
    """Return lists of floats as arrays, which are passed on in a fifth of the time. The engine takes both."""
    if not isinstance(vectors, list):
        return vectors
    return array("f", vectors) if isinstance(vectors[0], float) else [_packed(each) for each in vectors]
