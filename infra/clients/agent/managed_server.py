"""The backend of an editor's session: the server that runs on the data folder, or one that the session starts.

Only one process can use the data folder. If no server runs on it, the session starts `kho serve`, which the command
line and other editors then use as well. The session passes its roots, because the default is the working folder, and an
editor's working folder is arbitrary.
"""

from __future__ import annotations

import sys
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from infra.clients.agent.backend import BackendError, RemoteBackend, api_key_for, unusable_folder
from infra.local import components
from infra.local.data_folder import DataFolderError, DataFolderInUse, read_server_info, running_server
from infra.local.dynamodb import start_child
from infra.prepare import SUPPORTS_STORE
from shared.platform.python_process import module_command

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Sequence

    from infra.clients.agent.backend import BackendTarget

_START_SECONDS: Final = 60
_FIRST_START_SECONDS: Final = 600
"""The first start of an installed wheel fetches the DynamoDB engine."""
_POLL_SECONDS: Final = 0.1


class ManagedServerBackend:
    """A backend that calls the server now running on the data folder, and starts one if there is none."""

    def __init__(self, target: BackendTarget, roots: Sequence[Path]) -> None:
        self._target = target
        self._key = api_key_for(target.endpoint)
        self._data = target.data_folder
        self._roots = roots
        self._starting = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = threading.Event()
        # Its thread lives as long as the session: Linux ends a child with the thread that started it.
        self._starter = ThreadPoolExecutor(max_workers=1)
        self._first_start: Future[str] | None = None

    def call(self, method: str, params: dict[str, Any]) -> Any:
        """Return the result as plain JSON values, or raise `BackendError`. Calls fail after `close`."""
        return self.server().call(method, params)

    def start(self) -> bool:
        """Return True if there is a server now. Otherwise start one in the background; calls report its failure."""
        if self._target.endpoint or self._is_running():
            return True
        self._first_start = self._first_start or self._starter.submit(self._address)
        return False

    def _is_running(self) -> bool:
        try:
            return running_server(self._data) is not None
        except DataFolderError:
            return False

    def server(self) -> RemoteBackend:
        """Return a client of the server that runs now, or raise `BackendError`."""
        if self._closed.is_set():
            raise _closed_error()
        address = self._target.endpoint or self._address()
        return RemoteBackend(address, self._key, self._target.timeout)

    def close(self) -> None:
        """End the server that this session started. Pending calls start no other."""
        self._closed.set()
        with self._starting:
            if self._process:
                self._process.terminate()
                self._process.wait()

    def _address(self) -> str:
        with self._starting:
            seconds = _START_SECONDS if components.are_ready() else _FIRST_START_SECONDS
            deadline = time.monotonic() + seconds
            while time.monotonic() < deadline:
                if self._closed.is_set():
                    raise _closed_error()
                try:
                    running = read_server_info(self._data)
                except DataFolderInUse:  # a server is starting
                    time.sleep(_POLL_SECONDS)
                    continue
                except DataFolderError as error:
                    raise unusable_folder(error) from None
                if running:
                    return running["address"]
                if self._process is None or self._process.poll() is not None:
                    self._start()
                time.sleep(_POLL_SECONDS)
            raise BackendError.system("The local server did not start.", f"See {self._data / 'serve.log'}.")

    def _start(self) -> None:
        self._data.mkdir(mode=0o700, parents=True, exist_ok=True)
        kho = Path(sys.executable).with_name("kho")
        if SUPPORTS_STORE and not components.are_ready():
            # An editor may give up before the first start ends: the next session goes on where this one was.
            components.prepare_in_background()
        # Some installations keep commands apart from the interpreter.
        start = [str(kho)] if kho.is_file() else module_command("infra.clients.cli.main")
        command = [*start, "serve", "--data", str(self._data), "--port", "0", "--mqtt-port", "0"]
        for root in self._roots:
            command += ["--root", str(root)]
        self._process = start_child(command, self._data / "serve.log")


def _closed_error() -> BackendError:
    return BackendError.system("The editor has closed this session.", "Start another one.")
