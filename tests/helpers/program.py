"""The programs `kho` and `research-agent` for tests whose subject is not how a program starts."""

from __future__ import annotations

import atexit
import ctypes
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

from tests.helpers.environment import ORIGINAL_ENVIRONMENT
from tests.helpers.wait import CEILING_SECONDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

KHO: Final = "kho"
RESEARCH_AGENT: Final = "research-agent"
KHO_WITH_LONG_LIMITS: Final = "tests.e2e.long_limits"
_READ_AT_START: Final = ("POWERTOOLS", "PYTHON")
"""Prefixes of variables that count when the interpreter or a module starts."""
_PR_SET_CHILD_SUBREAPER: Final = 36


def command(program: str) -> list[str]:
    """Return the command that starts a program as users do."""
    if os.sep in program:  # that of another checkout
        return [program]
    if "." in program:  # a module
        return [sys.executable, "-m", program]
    return [str(Path(sys.executable).with_name(program))]


class ProgramCopy:
    """A copy of a process that has imported everything, with the methods of `Popen` that tests use. Linux alone."""

    def __init__(
        self,
        program: str,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        *,
        cwd: Path | None = None,
        stdin: int | None = None,
        stdout: int | TextIO | None = None,
        stderr: int | TextIO | None = None,
    ) -> None:
        request = {
            "name": program,
            "arguments": arguments,
            "folder": str(cwd or Path.cwd()),
            "environment": dict(environment),
        }
        with ExitStack() as theirs:
            streams = [_stream(given, number, theirs) for number, given in enumerate((stdin, stdout, stderr))]
            self.stdin, self.stdout, self.stderr = (own for own, _ in streams)
            self.pid = _server().start(request, [descriptor for _, descriptor in streams])
        self.returncode: int | None = None
        self._end = os.pidfd_open(self.pid)
        weakref.finalize(self, os.close, self._end)
        self._reaping = threading.Lock()

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code at the program's end. Raise TimeoutExpired if that does not come in time."""
        end = select.poll()
        end.register(self._end, select.POLLIN)
        if not end.poll(None if timeout is None else timeout * 1000):
            raise subprocess.TimeoutExpired(self.pid, timeout or 0)  # type: ignore[arg-type]  # shown as the command
        with self._reaping:
            if self.returncode is None:
                self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.returncode

    def poll(self) -> int | None:
        """Return the exit code, None while the program runs."""
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the program has ended."""
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._end, number)

    def terminate(self) -> None:
        """Ask the program to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End the program at once."""
        self.send_signal(signal.SIGKILL)

    def communicate(self, written: str | None = None, timeout: float | None = None) -> tuple[str, str]:
        """Write to the standard input, and return all output at the program's end."""
        pool = ThreadPoolExecutor(3)
        try:
            if self.stdin:
                pool.submit(self._write, written or "")
            output, errors = (pool.submit(each.read) if each else None for each in (self.stdout, self.stderr))
            self.wait(timeout)
            results = output.result(timeout) if output else "", errors.result(timeout) if errors else ""
        finally:
            pool.shutdown(wait=False)
        self._close()
        return results

    def __enter__(self) -> ProgramCopy:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()
        self.wait()

    def _close(self) -> None:
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream:
                with suppress(BrokenPipeError):
                    stream.close()

    def _write(self, text: str) -> None:
        assert self.stdin
        with suppress(BrokenPipeError), self.stdin:
            self.stdin.write(text)


RunningProgram = subprocess.Popen[str] | ProgramCopy


def start(program: str, *arguments: str, env: Mapping[str, str] | None = None, **options: Any) -> RunningProgram:
    """Start a program: on Linux as a copy, which saves a second, unless its environment counts at the start."""
    environment = dict(env or os.environ)
    if sys.platform != "linux" or _read_at_start(environment) != _read_at_start(ORIGINAL_ENVIRONMENT):
        return subprocess.Popen([*command(program), *arguments], text=True, env=environment, **options)
    return ProgramCopy(program, arguments, environment, **options)


def run(program: str, *arguments: str, written: str | None = None, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a program on what is written to its standard input, if that is given. Return when it has ended."""
    pipe = subprocess.PIPE
    options |= {"stdout": pipe, "stderr": pipe} | ({} if written is None else {"stdin": pipe})
    with start(program, *arguments, **options) as running:
        try:
            output, errors = running.communicate(written, CEILING_SECONDS)
        finally:
            running.kill()
    return subprocess.CompletedProcess([program, *arguments], running.wait(), output, errors)


def _stream(given: int | TextIO | None, number: int, theirs: ExitStack) -> tuple[TextIO | None, int]:
    """Return the test's end of a pipe, if one was asked for, and the descriptor that the program gets."""
    if given == subprocess.PIPE:
        reading, writing = os.pipe()
        ours, descriptor = (writing, reading) if number == 0 else (reading, writing)
        theirs.callback(os.close, descriptor)
        return os.fdopen(ours, "w" if number == 0 else "r"), descriptor
    if given == subprocess.DEVNULL:
        descriptor = os.open(os.devnull, os.O_RDWR)
        theirs.callback(os.close, descriptor)
        return None, descriptor
    if given is None:
        return None, number
    return None, given if isinstance(given, int) else given.fileno()


def _read_at_start(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(_READ_AT_START)}


class _ProgramServer:
    """This process's own `program_server`, which ends with it."""

    def __init__(self) -> None:
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
        self._requests, theirs = socket.socketpair()
        atexit.register(self._requests.close)
        self._turn = threading.Lock()
        with theirs:
            subprocess.Popen(
                [sys.executable, "-m", "tests.helpers.program_server", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env=ORIGINAL_ENVIRONMENT,
            ).returncode = 0  # it ends with this process, which never waits for it

    def start(self, request: dict[str, Any], descriptors: list[int]) -> int:
        """Start a program and return its process id."""
        text = json.dumps(request).encode() + b"\n"
        with self._turn:
            sent = socket.send_fds(self._requests, [text], descriptors)
            self._requests.sendall(text[sent:])
            return int(self._requests.recv(20))


@cache
def _server() -> _ProgramServer:
    return _ProgramServer()
