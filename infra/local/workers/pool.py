"""The workers of this process, which hands them the connections that it accepts."""

from __future__ import annotations

import selectors
import socket
import threading
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from infra.local.workers import descriptors
from infra.local.workers.connection_record import SLOTS, ConnectionRecords, Progress, Traffic
from infra.local.workers.lost_call import lost_response, summary
from infra.local.workers.owned_functions import OwnerService
from infra.local.workers.worker import END, READY, SLOT
from shared.platform.telemetry import logger

if TYPE_CHECKING:
    from infra.local.functions import Functions
    from infra.local.workers.nursery import Nursery
    from infra.local.workers.shared_indexes import SharedIndexes
    from infra.local.workers.worker import Settings

_RESTART_SECONDS: Final = 0.2
_RETRY_SECONDS: Final = 1.0
_ACCEPT_PAUSE_SECONDS: Final = 0.01
_SEND_SECONDS: Final = 1.0
_PART: Final = 65_536


@dataclass(frozen=True, slots=True)
class _Held:
    """The owner's duplicate of a connection, and its traffic before the worker had it."""

    connection: socket.socket
    before: Traffic = field(default_factory=Traffic)


@dataclass(frozen=True, slots=True)
class WorkerParts:
    """The number of workers, and what they have together."""

    count: int
    nursery: Nursery
    indexes: SharedIndexes


@dataclass(eq=False)
class _Worker:
    pid: int
    control: socket.socket
    records: ConnectionRecords
    started: float = field(default_factory=time.monotonic)
    connections: dict[int, _Held] = field(default_factory=dict)
    free: list[int] = field(default_factory=lambda: list(reversed(range(SLOTS))))
    is_ready: bool = False


class WorkerPool:
    """Workers that are replaced when they die, and the connections that they serve."""

    def __init__(
        self,
        parts: WorkerParts,
        settings: Settings,
        listener: socket.socket,
        functions: Functions,
    ) -> None:
        self._nursery = parts.nursery
        self._settings = settings
        self._listener = listener
        self._functions = functions
        self._indexes = parts.indexes
        self._workers: list[_Worker] = []
        self._threads: list[threading.Thread] = []
        self._waiting: deque[_Held] = deque()
        """Connections without a worker."""
        self._changed = threading.Condition()
        """Guards the workers and their connections."""
        self._ending = False
        self._wake, self._woken = socket.socketpair()
        for _ in range(parts.count):
            self._start_worker()

    def wait_until_ready(self) -> None:
        """Return when all workers can serve, or the end was asked for."""
        with self._changed:
            self._changed.wait_for(lambda: self._ending or all(each.is_ready for each in self._workers))

    def serve(self) -> None:
        """Hand over connections until the end is asked for. Return when the workers have ended."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._listener, selectors.EVENT_READ)
            selector.register(self._woken, selectors.EVENT_READ)
            while not self._ending:
                selector.select()
                try:
                    connection, _ = self._listener.accept()
                except BlockingIOError:
                    continue
                except OSError:  # the client has gone, or too many files are open
                    time.sleep(_ACCEPT_PAUSE_SECONDS)
                    continue
                with self._changed:
                    self._assign(_Held(connection))
        self._listener.close()
        with self._changed:
            for each in self._workers:
                with suppress(OSError):
                    each.control.sendall(SLOT.pack(END))
        for thread in self._threads:
            thread.join()

    def end(self) -> None:
        """Ask for the end."""
        with self._changed:
            self._ending = True
            self._changed.notify_all()
        self._wake.send(b"\0")

    def requests(self) -> list[str]:
        """Return the verbs and paths of the requests under way."""
        with self._changed:
            notes = [each.records.request(slot) for each in self._workers for slot in each.connections]
        return [summary(note) for note in notes if note is not None]

    def _start_worker(self) -> None:
        control, their_control = socket.socketpair()
        calls, their_calls = socket.socketpair()
        records = ConnectionRecords()
        with their_control, their_calls:
            theirs = [their_control.fileno(), their_calls.fileno(), records.descriptor]
            pid = self._nursery.fork(self._settings, theirs)
        worker = _Worker(pid, control, records)
        service = OwnerService(calls, self._functions, self._indexes)
        with self._changed:
            self._workers.append(worker)
            self._threads = [each for each in self._threads if each.is_alive()]
            for work in (service.run, lambda: self._attend(worker)):
                thread = threading.Thread(target=work, name="worker", daemon=True)
                self._threads.append(thread)
                thread.start()
            if self._ending:
                control.sendall(SLOT.pack(END))

    def _attend(self, worker: _Worker) -> None:
        """Take the worker's messages until it has ended, then take its place."""
        with suppress(OSError):
            while message := worker.control.recv(SLOT.size, socket.MSG_WAITALL):
                (slot,) = SLOT.unpack(message)
                with self._changed:
                    if slot == READY:
                        worker.is_ready = True
                        self._changed.notify_all()
                        self._assign_waiting()
                    else:
                        worker.connections.pop(slot).connection.close()
                        worker.free.append(slot)
        self._replace(worker)

    def _replace(self, worker: _Worker) -> None:
        with self._changed:
            self._workers.remove(worker)
            connections = list(worker.connections.items())
            if not worker.is_ready:
                self._assign_waiting()
        failures = sum([self._take_over(worker, slot, held) for slot, held in connections])
        worker.control.close()
        worker.records.close()
        if self._ending:
            return
        logger.error("worker", extra={"failure": "a worker ended", "pid": worker.pid, "failed_calls": failures})
        # A worker that ends at its start is not started again at once.
        pause = worker.started + _RESTART_SECONDS - time.monotonic()
        while not self._ending:
            time.sleep(max(0.0, pause))
            try:
                self._start_worker()
            except OSError as error:
                logger.error("worker", extra={"failure": f"a worker cannot be started: {error}"})
                with self._changed:
                    self._assign_waiting()
                pause = _RETRY_SECONDS
            else:
                return

    def _take_over(self, worker: _Worker, slot: int, held: _Held) -> bool:
        """Answer in the dead worker's place, or let another one go on. Return True if a call has failed."""
        traffic = Traffic.of(held.connection)
        progress = worker.records.progress(slot, traffic.since(held.before))
        if progress is Progress.BETWEEN_REQUESTS and not self._ending:
            with self._changed:
                self._waiting.append(_Held(held.connection, traffic))  # for the worker that takes this one's place
            return False
        if progress in (Progress.NOT_BEGUN, Progress.BEGUN):
            has_begun = progress is Progress.BEGUN
            note = worker.records.note(slot) if has_begun else worker.records.request(slot)
            response = lost_response(note or b"", has_begun=has_begun)
            with suppress(OSError):
                held.connection.settimeout(_SEND_SECONDS)
                held.connection.sendall(response)
                held.connection.setblocking(False)
                while held.connection.recv(_PART):  # with bytes unread, the system would reset the connection
                    pass
        held.connection.close()
        return progress is not Progress.BETWEEN_REQUESTS

    def _assign_waiting(self) -> None:
        waiting, self._waiting = self._waiting, deque()
        for held in waiting:
            self._assign(held)

    def _assign(self, held: _Held) -> None:
        """Hand a connection to the worker with the fewest. Keep it if none takes it now."""
        ready = [each for each in self._workers if each.is_ready and each.free]
        for worker in sorted(ready, key=lambda each: len(each.connections)):
            slot = worker.free.pop()
            worker.records.clear(slot)
            worker.connections[slot] = held
            try:
                descriptors.send(worker.control, SLOT.pack(slot), held.connection, socket.MSG_DONTWAIT)
            except BlockingIOError:  # it is busy
                del worker.connections[slot]
                worker.free.append(slot)
            except OSError:
                return  # it has ended; its connections are about to be assigned again
            else:
                return
        self._waiting.append(held)
