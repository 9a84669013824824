"""The process that forks workers: they start in milliseconds, and share the memory of what it has imported.

It has one thread: a fork of several may inherit a lock that is never released.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import os
import pickle
import signal
import socket
import struct
import subprocess
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NoReturn

from shared.platform.python_process import module_command

if TYPE_CHECKING:
    from collections.abc import Sequence

    from infra.local.workers.worker import Settings

SUPPORTED: Final = sys.platform == "linux"
"""Elsewhere a fork is not safe, or a dead worker leaves no trace of what it has sent."""
MODULE: Final = "infra.local.workers.nursery"
_WORKER: Final = "infra.local.workers.worker"
_LENGTH: Final = struct.Struct("<I")
_PR_SET_PDEATHSIG: Final = 1
_IGNORED: Final = ("SIGINT", "SIGTERM", "SIGHUP")
"""Signals that a supervisor may send to all processes. The owner ends them in order."""


class Nursery:
    """The owner's side. The process is started again if it has ended."""

    def __init__(self, modules: Sequence[str]) -> None:
        self._modules = modules
        self._turn = threading.Lock()
        self._start()

    def fork(self, settings: Settings, sockets: Sequence[int]) -> int:
        """Start a worker with these descriptors. Return its process id. Raise OSError if that is impossible."""
        with self._turn:
            try:
                return self._request(settings, sockets)
            except ConnectionError:
                self._end()
                self._start()
                return self._request(settings, sockets)

    def close(self) -> None:
        """End the process."""
        with self._turn:
            self._end()

    def _start(self) -> None:
        self._connection, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603 - our own words only
                [*module_command(MODULE), str(theirs.fileno()), *self._modules],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )

    def _request(self, settings: Settings, sockets: Sequence[int]) -> int:
        request = pickle.dumps(settings)
        self._connection.sendall(_LENGTH.pack(len(request)) + request)
        socket.send_fds(self._connection, [b"\0"], list(sockets))
        answer = self._connection.recv(_LENGTH.size, socket.MSG_WAITALL)
        if len(answer) < _LENGTH.size:
            raise ConnectionResetError("the process that starts workers has ended")
        return int(_LENGTH.unpack(answer)[0])

    def _end(self) -> None:
        self._connection.close()
        self._process.wait()


def main(requests: socket.socket, modules: Sequence[str]) -> NoReturn:
    """Import the modules, then fork a worker at each request, until the owner ends."""
    for name in _IGNORED:
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    for module in [*modules, _WORKER]:
        importlib.import_module(module)
    # The garbage collector would write to the pages that workers share.
    gc.collect()
    gc.freeze()
    while True:
        header = requests.recv(_LENGTH.size, socket.MSG_WAITALL)
        if len(header) < _LENGTH.size:
            os._exit(0)  # the owner has ended, and the workers end with this process
        (length,) = _LENGTH.unpack(header)
        settings: Settings = pickle.loads(requests.recv(length, socket.MSG_WAITALL))  # noqa: S301 - the owner's
        _, descriptors, _, _ = socket.recv_fds(requests, 1, 3)
        _reap()
        this = os.getpid()
        worker = os.fork()
        if worker == 0:
            requests.close()
            _run(this, settings, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        requests.sendall(_LENGTH.pack(worker))


def _run(parent: int, settings: Settings, descriptors: Sequence[int]) -> NoReturn:
    """Run the worker in this process, which the system ends with its parent."""
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == parent:
            from infra.local.workers.worker import run

            run(settings, descriptors)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(1)


def _reap() -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])), sys.argv[2:])
