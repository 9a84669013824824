"""The programs `kho` and `research-agent` for tests whose subject is not how a program starts."""

from __future__ import annotations

import atexit
import ctypes
import json
import os
import socket
import subprocess
import sys
import threading
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.helpers.environment import ORIGINAL_ENVIRONMENT
from tests.helpers.wait import CEILING_SECONDS

if TYPE_CHECKING:
    from collections.abc import Mapping

KHO: Final = "kho"
RESEARCH_AGENT: Final = "research-agent"
KHO_WITH_LONG_LIMITS: Final = "tests.e2e.long_limits"
_READ_AT_START: Final = ("AWS", "POWERTOOLS", "PYTHON")
"""Prefixes of variables that count when the interpreter or a module starts."""
_PR_SET_CHILD_SUBREAPER: Final = 36


def command(program: str) -> list[str]:
    """Return the command that starts a program as users do."""
    if os.sep in program:  # that of another checkout
        return [program]
    if "." in program:  # a module
        return [sys.executable, "-m", program]
    return [str(Path(sys.executable).with_name(program))]


class Program(subprocess.Popen[str]):
    """A running program. On Linux it is a copy of a process that has imported everything, which saves a second."""

    def __init__(self, program: str, *arguments: str, env: Mapping[str, str] | None = None, **options: Any) -> None:
        self._program = program
        super().__init__([*command(program), *arguments], text=True, env=dict(env or os.environ), **options)

    def _execute_child(self, args: list[str], *rest: Any) -> None:
        folder, environment, (stdin, _, _, stdout, _, stderr) = rest[4], rest[5], rest[9:15]
        if sys.platform != "linux" or _read_at_start(environment) != _read_at_start(ORIGINAL_ENVIRONMENT):
            super()._execute_child(args, *rest)  # type: ignore[misc]
            return
        request = {
            "name": self._program,
            "arguments": args[len(command(self._program)) :],
            "folder": str(folder or Path.cwd()),
            "environment": environment,
        }
        inherited = [own if given == -1 else given for own, given in enumerate((stdin, stdout, stderr))]
        self.pid = _server().start(request, inherited)
        self._child_created = True
        self._close_pipe_fds(*rest[9:15])  # type: ignore[attr-defined]


def run(program: str, *arguments: str, written: str | None = None, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a program on what is written to its standard input, if that is given. Return when it has ended."""
    pipe = subprocess.PIPE
    options |= {"stdout": pipe, "stderr": pipe} | ({} if written is None else {"stdin": pipe})
    with Program(program, *arguments, **options) as running:
        try:
            output, errors = running.communicate(written, CEILING_SECONDS)
        finally:
            running.kill()
    return subprocess.CompletedProcess(running.args, running.returncode, output, errors)


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
