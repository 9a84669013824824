"""Lambda on this machine: one emulator for each instance, and the service that finds an idle instance or starts one."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections import defaultdict
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import urllib3

from tests.helpers.wait import CEILING_SECONDS
from tests.suites.rie.functions import environment_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tests.suites.rie.functions import DeployedFunction
    from tests.suites.rie.installation import Installed

_INVOKED: Final = "/2015-03-31/functions/function/invocations"
_INIT: Final = re.compile(r"INIT REPORT\(durationMs: ([\d.]+)\)")
_CALL: Final = re.compile(r"INVOKE RTDONE\(status: \w+, produced bytes: \d+, duration: ([\d.]+)ms\)")
_PEAK: Final = re.compile(r"VmHWM:\s+(\d+) kB")
_KEPT: Final = ("PATH", "HOME", "LANG", "TZ", "TMPDIR")


class Instance:
    """One instance of a function: an emulator, and below it the runtime with the function in it."""

    def __init__(
        self,
        installed: Installed,
        function: DeployedFunction,
        environment: Mapping[str, str],
        path: Sequence[Path] = (),
    ) -> None:
        self.function = function
        self._log = tempfile.NamedTemporaryFile(prefix=f"rie-{function.name}-", suffix=".log")  # noqa: SIM115 - closed with the instance
        self._address, runtime_api = _free_addresses()
        layers = [str(installed.layer(each)) for each in function.layers]
        own = {
            "LAMBDA_TASK_ROOT": str(installed.task),
            "PYTHONPATH": os.pathsep.join([str(installed.task), *layers, *map(str, path)]),
            "PYTHONDONTWRITEBYTECODE": "1",  # where functions run, nothing can be written
            "AWS_LAMBDA_FUNCTION_NAME": f"kho-{function.name}",
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(function.memory_mb),
            "AWS_LAMBDA_FUNCTION_TIMEOUT": str(int(function.timeout)),
        }
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        command = [str(installed.emulator), "--log-level", "info"]
        command += ["--runtime-interface-emulator-address", self._address, "--runtime-api-address", runtime_api]
        self._process = subprocess.Popen(
            [*command, str(installed.python), "-m", "awslambdaric", function.handler],
            env=kept | environment_of(function, environment) | own,
            cwd=installed.task,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._await_listening()
        self._http = urllib3.PoolManager(retries=False)

    def invoke(self, payload: bytes) -> bytes:
        """Send an event. Return the function's answer; the first call starts it."""
        answer = self._http.request("POST", f"http://{self._address}{_INVOKED}", body=payload, timeout=60)
        return answer.data

    @property
    def log(self) -> str:
        """The output of the emulator and the function."""
        return Path(self._log.name).read_text(encoding="utf-8", errors="replace")

    def init_ms(self) -> float:
        """Return the time from the runtime's start to its first request for an event."""
        return float(_INIT.findall(self.log)[0])

    def processor_ms(self) -> float:
        """Return the runtime's CPU time since its start."""
        tasks = Path(f"/proc/{self._runtime()}/task").glob("*/schedstat")
        return sum(int(each.read_text().split()[0]) for each in tasks) / 1e6

    def peak_mb(self) -> float:
        """Return the most memory that the runtime has had."""
        status = Path(f"/proc/{self._runtime()}/status").read_text()
        return int(_PEAK.findall(status)[0]) / 1024

    def calls_ms(self) -> list[float]:
        """Return the duration of each call, from the event to the answer."""
        return [float(duration) for duration in _CALL.findall(self.log)]

    def close(self) -> None:
        """End the emulator and what runs below it."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._http.clear()
        self._log.close()

    def _runtime(self) -> str:
        threads = Path(f"/proc/{self._process.pid}/task").glob("*/children")
        (pid,) = " ".join(each.read_text() for each in threads).split()
        return pid

    def _await_listening(self) -> None:
        host, port = self._address.split(":")
        deadline = time.monotonic() + CEILING_SECONDS
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                break
            with socket.socket() as probe:
                if probe.connect_ex((host, int(port))) == 0:
                    return
            time.sleep(0.01)
        raise AssertionError(f"the emulator of {self.function.name} did not start: {self.log}")


class Lambda:
    """The functions' instances as on Lambda: each serves one call at a time, and is kept for the next."""

    def __init__(
        self,
        installed: Installed,
        functions: Sequence[DeployedFunction],
        environment: Mapping[str, str],
        path: Sequence[Path] = (),
    ) -> None:
        self._installed = installed
        self._functions = {function.name: function for function in functions}
        self._environment = dict(environment)
        self._path = path
        self._idle: dict[str, list[Instance]] = defaultdict(list)
        self._all: list[Instance] = []
        self._changing = threading.Lock()

    def point_at(self, url: str) -> None:
        """Let functions call each other by the service at `url`."""
        self._environment["AWS_ENDPOINT_URL_LAMBDA"] = url

    def invoke(self, name: str, payload: bytes) -> tuple[bytes, Instance]:
        """Invoke a function. Return its answer and the instance that made it."""
        with self._changing:
            instance = self._idle[name].pop() if self._idle[name] else None
        if instance is None:
            instance = Instance(self._installed, self._functions[name], self._environment, self._path)
            with self._changing:
                self._all.append(instance)
        answer = instance.invoke(payload)
        with self._changing:
            self._idle[name].append(instance)
        return answer, instance

    def logs(self) -> str:
        """Return the output of every function."""
        return "\n".join(instance.log for instance in self._all)

    def close(self, name: str = "") -> None:
        """End every idle instance, or those of one function."""
        with self._changing:
            ending = [each for each in self._all if name in ("", each.function.name)]
            for each in ending:
                self._all.remove(each)
            for kept in self._idle.values() if not name else [self._idle[name]]:
                kept.clear()
        for each in ending:
            each.close()


@contextmanager
def service(functions: Lambda, prefix: str) -> Iterator[str]:
    """Serve Lambda's own API for invocations, on loopback, under names that begin with `prefix`."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # head and body are two writes, and the second would wait for an answer

        def do_POST(self) -> None:
            name = self.path.split("/")[3].removeprefix(prefix)
            answer, _ = functions.invoke(name, self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.send_header("content-length", str(len(answer)))
            if crashed(answer):
                self.send_header("X-Amz-Function-Error", "Unhandled")
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: Any) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def crashed(answer: bytes) -> bool:
    """Return True if the answer is the runtime's, not the function's."""
    try:
        error = json.loads(answer)
    except ValueError:
        return True
    return isinstance(error, dict) and "errorType" in error


def _free_addresses() -> tuple[str, str]:
    with socket.socket() as one, socket.socket() as other:
        for probe in (one, other):
            probe.bind(("127.0.0.1", 0))
        return tuple(f"127.0.0.1:{probe.getsockname()[1]}" for probe in (one, other))  # type: ignore[return-value]
