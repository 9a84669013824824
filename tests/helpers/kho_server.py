"""`kho serve` as users start it, for tests through the real endpoints."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import urllib3

from tests.helpers.environment import ORIGINAL_ENVIRONMENT
from tests.helpers.program import KHO, KHO_WITH_LONG_LIMITS, command, start
from tests.helpers.wait import CEILING_SECONDS, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from tests.helpers.program import RunningProgram


class KhoServer:
    """One running server and its data folder.

    Its time limits are longer than any test unless the test asks for production's, which a slow machine may reach. It
    starts as a copy (`program.py`), or as users start it if it is measured. It has one worker unless the test, or the
    environment of all tests, asks for more: each takes processor time at the start.
    """

    def __init__(
        self,
        data: Path,
        *options: str,
        environment: dict[str, str] | None = None,
        production_limits: bool = False,
        measured: bool = False,
        program: str = "",
    ) -> None:
        self.data = data
        self.process: RunningProgram
        self._output = data.parent / f"{data.name}.out"
        self._program = program or (KHO if production_limits else KHO_WITH_LONG_LIMITS)
        self._starts_itself = bool(program) or measured
        self._arguments = ["serve", "--data", str(data), "--port", "0", "--mqtt-port", "0", *options]
        self._environment = {"KHO_WORKERS": "1"} | ORIGINAL_ENVIRONMENT | (environment or {})
        self.http = urllib3.PoolManager(maxsize=64, retries=False, timeout=CEILING_SECONDS)
        self.start()

    def start(self) -> None:
        """Start and wait until the server answers."""
        with self._output.open("w") as output:
            options: dict[str, Any] = {"stdout": output, "stderr": output, "env": self._environment}
            if self._starts_itself:
                self.process = subprocess.Popen([*command(self._program), *self._arguments], text=True, **options)
            else:
                self.process = start(self._program, *self._arguments, **options)
        until(self._is_ready)
        match = re.search(r"listens on (http://\S+)", self.printed())
        assert match
        self.address = match[1]

    @property
    def mqtt_port(self) -> int:
        """Return the port for devices."""
        match = re.search(r"Devices connect to mqtt://127\.0\.0\.1:(\d+)", self.printed())
        assert match
        return int(match[1])

    @property
    def store_pid(self) -> int:
        """Return the process id of the store."""
        return self._child(b"dynoxide")

    @property
    def nursery_pid(self) -> int:
        """Return the process id of the parent of the workers."""
        return self._child(b"nursery")

    @property
    def worker_pids(self) -> list[int]:
        """Return the process ids of the workers."""
        return children_of(self.nursery_pid)

    def _child(self, name: bytes) -> int:
        children = children_of(self.process.pid)
        return next(pid for pid in children if name in Path(f"/proc/{pid}/cmdline").read_bytes())

    @contextmanager
    def stalled_store(self) -> Iterator[None]:
        """Suspend the store inside the block."""
        pid = self.store_pid
        os.kill(pid, signal.SIGSTOP)
        try:
            until(lambda: _is_stopped(pid))
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    def call(self, method: str, /, **params: Any) -> Any:
        """Return the result of one JSON-RPC call. Raise if it fails."""
        answer = self.rpc({"jsonrpc": "2.0", "method": method, "params": params, "id": 1})
        assert "result" in answer, answer
        return answer["result"]

    def error(self, method: str, /, **params: Any) -> Any:
        """Return the error of one JSON-RPC call. Raise if it succeeds."""
        answer = self.rpc({"jsonrpc": "2.0", "method": method, "params": params, "id": 1})
        assert "error" in answer, answer
        return answer["error"]

    def rpc(self, body: Any) -> Any:
        """Return the response of the JSON-RPC endpoint, None if it is empty."""
        response = self.post("/jsonrpc", json.dumps(body).encode())
        return json.loads(response.data) if response.data else None

    def post(
        self, path: str, body: bytes, content_type: str | None = "application/json", **headers: str
    ) -> urllib3.BaseHTTPResponse:
        """Return the response to a POST."""
        all_headers = headers | ({"content-type": content_type} if content_type else {})
        return self.http.request("POST", self.address + path, body=body, headers=all_headers)

    def get(self, path: str, **headers: str) -> urllib3.BaseHTTPResponse:
        """Return the response to a GET."""
        return self.http.request("GET", self.address + path, headers=headers)

    def printed(self) -> str:
        """Return the server's terminal output."""
        return self._output.read_text()

    def kill(self) -> None:
        """End the server as a crash would."""
        self.process.kill()
        self.process.wait()

    def interrupt(self) -> int:
        """End the server as Ctrl-C does, and return its exit code."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(CEILING_SECONDS)

    def __enter__(self) -> KhoServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.interrupt()
        self.http.clear()

    def _is_ready(self) -> bool:
        assert self.process.poll() is None, f"the server ended: {self.printed()}"
        return "Ctrl-C ends it." in self.printed()


def children_of(pid: int) -> list[int]:
    """Return the ids of a process's child processes."""
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text().split()]


def _is_stopped(pid: int) -> bool:
    """Return True if every thread is stopped. Threads run on until one of them has taken the signal."""
    states = [stat.read_text().rpartition(")")[2].split()[0] for stat in Path(f"/proc/{pid}/task").glob("*/stat")]
    return set(states) == {"T"}
