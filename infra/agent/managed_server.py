"""A backend for as long as an editor is open: the server that runs on the data, or one that is started for it.

One process alone can have the data folder. So an editor's session starts `kho serve` on it where none runs, and the
command line and other editors find that one. It is told the session's roots: its own default, the working folder, is
wherever the editor happens to be.
"""

from __future__ import annotations

import platform
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from infra.agent.backend import BackendError, RemoteBackend
from infra.local.data_folder import DataFolderInUse, read_server_info
from infra.local.dynamodb import end_with_parent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from infra.agent.backend import BackendConfig

_START_SECONDS: Final = 60
_POLL_SECONDS: Final = 0.1


class ManagedServerBackend:
    """Answers from wherever the data is served at the moment."""

    def __init__(self, choice: BackendConfig, roots: Sequence[Path]) -> None:
        self._choice = choice
        self._data = choice.data.expanduser().resolve()
        self._roots = roots
        self._starting = threading.Lock()
        self._started: subprocess.Popen[bytes] | None = None
        self._closed = threading.Event()

    def call(self, method: str, params: dict[str, Any]) -> Any:
        """The result as plain JSON values, or `Refused`; once closed, nothing is asked any more."""
        if self._closed.is_set():
            raise _closed_error()
        address = self._choice.endpoint or self._address()
        return RemoteBackend(address, self._choice.key, self._choice.timeout).call(method, params)

    def close(self) -> None:
        """End the server that was started here, and start no other for who is still waiting."""
        self._closed.set()
        with self._starting:
            if self._started:
                self._started.terminate()
                self._started.wait()

    def _address(self) -> str:
        with self._starting:
            deadline = time.monotonic() + _START_SECONDS
            while time.monotonic() < deadline:
                if self._closed.is_set():
                    raise _closed_error()
                try:
                    running = read_server_info(self._data)
                except (DataFolderInUse, ValueError):  # it is starting, or writing where it is
                    time.sleep(_POLL_SECONDS)
                    continue
                except OSError as error:
                    said = f"{self._data} cannot be used: {error.strerror}."
                    raise BackendError.configuration(said, "Choose another folder with --data (KHO_DATA).") from None
                if running:
                    return running["address"]
                if self._started is None or self._started.poll() is not None:
                    self._start()
                time.sleep(_POLL_SECONDS)
            raise BackendError.system("The local server did not start.", f"Look into {self._data / 'serve.log'}.")

    def _start(self) -> None:
        self._data.mkdir(mode=0o700, parents=True, exist_ok=True)
        kho = Path(sys.executable).with_name("kho")
        command = [str(kho), "serve", "--data", str(self._data), "--port", "0", "--mqtt-port", "0"]
        for root in self._roots:
            command += ["--root", str(root)]
        with (self._data / "serve.log").open("ab") as output:
            self._started = subprocess.Popen(  # noqa: S603 - our own words only
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                preexec_fn=end_with_parent if platform.system() == "Linux" else None,  # noqa: PLW1509 - one system call
            )


def _closed_error() -> BackendError:
    return BackendError.system("The editor has closed this session.", "Start another one.")
