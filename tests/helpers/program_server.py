"""A process that has imported Kho and loaded its model, and forks a copy of itself for each program that tests start.

Linux alone. The copy becomes the child of the process that started this one, which waits for its end (`program.py`).
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import signal
import socket
import sys
import warnings
from typing import TYPE_CHECKING

from infra.clients.agent import cli as agent_cli
from infra.clients.cli import main as kho
from infra.local.template import load
from tests.e2e import long_limits
from tests.helpers.limits import LIMITS

if TYPE_CHECKING:
    from collections.abc import Callable

_PROGRAMS: dict[str, Callable[[], None]] = {
    "kho": kho.main,
    "research-agent": agent_cli.main,
    "tests.e2e.long_limits": long_limits.main,
}
_IMPORTED_LATER = (
    "e5_model",
    "infra.clients.agent.files.reader",
    "infra.clients.agent.managed_server",
    "infra.clients.agent.mcp_proxy",
    "infra.clients.agent.tools",
    "infra.local.functions",
    "infra.local.search_engine.embedded",
    "infra.local.serve",
    "shared.migrations.documents_1_bin_entries",
    "shared.platform.log_file",
    "uvicorn.lifespan.off",
    "uvicorn.protocols.http.auto",
    "uvicorn.protocols.websockets.auto",
)
"""Modules that commands import when they run."""
_DESCRIPTORS = 3
_BYTES = 1_000_000


def import_everything() -> None:
    """Import what the commands and functions of Kho import when they run, and load the embedding model."""
    kho.app.resolved_commands()
    agent_cli.app.resolved_commands()
    for function in load().functions.values():
        importlib.import_module(function.handler.rpartition(".")[0])
    modules = {name.rpartition(".")[0] for name in LIMITS}
    for name in (*_IMPORTED_LATER, *sorted(modules)):
        importlib.import_module(name)
    from infra.clients.agent.stdio_transport import StdioServer
    from shared.search.embedding import e5

    StdioServer("kho", "")  # FastMCP imports the rest of itself

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(e5._engine()))  # never freed: each copy would spend 0.1 s on that


def await_program(requests: socket.socket) -> Callable[[], None]:
    """Fork for each request until the tests end. Return the program in the copy that is to run it."""
    while True:
        text, descriptors, _, _ = socket.recv_fds(requests, _BYTES, _DESCRIPTORS)
        while text and not text.endswith(b"\n"):
            text += requests.recv(_BYTES)
        if not text:
            sys.exit()
        answers, answer = os.pipe()
        if first := os.fork():
            os.waitpid(first, 0)
            requests.sendall(os.read(answers, _BYTES))
            for descriptor in (answers, answer, *descriptors):
                os.close(descriptor)
        elif second := os.fork():  # whose parent ends now, so that it becomes the child of the tests
            os.write(answer, b"%d\n" % second)
            os._exit(0)
        else:
            for standard, descriptor in enumerate(descriptors):
                os.dup2(descriptor, standard)
            os.closerange(_DESCRIPTORS, os.sysconf("SC_OPEN_MAX"))
            return _become(**json.loads(text))


def _become(name: str, arguments: list[str], folder: str, environment: dict[str, str]) -> Callable[[], None]:
    """Take over what a program gets from the process that starts it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - of the whole program
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, closefd=False, errors="backslashreplace")  # noqa: SIM115
    sys.argv = [name, *arguments]
    return _PROGRAMS[name]


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Python 3.12 counts the threads of numpy's library, which ends them before a fork.
    warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
    import_everything()
    gc.freeze()
    program = await_program(socket.socket(fileno=int(sys.argv[1])))
    program()
