"""Copies of this process, which has imported the packages that all tests need: each runs pytest once."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import signal
import sys
import time
import traceback
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path
    from types import CodeType, ModuleType

PREPARED: Final = (
    *("aws_lambda_powertools.logging", "boto3", "cryptography.x509", "cyclopts", "hypothesis.strategies"),
    *("joserfc.jwt", "mangum", "mcp", "mcp.server.lowlevel", "mcp.server.mcpserver", "numpy", "onnxruntime"),
    *("pydantic", "selectolax.lexbor", "starlette.applications", "uvicorn", "yaml"),
)
_POLL_SECONDS: Final = 0.02


class MutantFinder:
    """An importer that gives one module another source. Its file stays as it is."""

    def __init__(self, module: str, file: Path, source: str) -> None:
        self._module = module
        self._file = str(file)
        self._source = source

    def find_spec(self, name: str, _path: object = None, _target: ModuleType | None = None) -> Any:
        """Return the mutated module's specification, None for all other modules."""
        if name != self._module:
            return None
        loader = _MutantLoader(name, self._file)
        loader.source = self._source
        return importlib.util.spec_from_file_location(name, self._file, loader=loader)


class _MutantLoader(importlib.machinery.SourceFileLoader):
    source = ""

    def get_code(self, _fullname: str) -> CodeType:
        """Compile the mutated source, past the cache of bytecode."""
        return compile(self.source, self.path, "exec", dont_inherit=True)


class Selection:
    """A pytest plugin that keeps some tests, in the order in which they are given."""

    def __init__(self, tests: Iterable[str]) -> None:
        self._order = {test: number for number, test in enumerate(tests)}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Drop and order the collected tests."""
        items[:] = sorted(
            (item for item in items if item.nodeid in self._order), key=lambda item: self._order[item.nodeid]
        )


@dataclass(slots=True)
class Copies:
    """Copies that run at the same time, each at most for its own number of seconds."""

    limit: int
    log: Path
    """The output of the last one."""
    _running: dict[int, tuple[Any, float]] = field(default_factory=dict)

    def run(self, tasks: Iterable[tuple[Any, float, Callable[[], int]]]) -> Iterator[tuple[Any, int | None]]:
        """Run each task in a copy. Yield its name and its exit code, or None if it was ended for its duration."""
        for name, seconds, task in tasks:
            while len(self._running) >= self.limit:
                yield self._ended()
            sys.stdout.flush()
            pid = os.fork()
            if not pid:
                _run_and_exit(task, self.log)
            self._running[pid] = name, time.monotonic() + seconds
        while self._running:
            yield self._ended()

    def _ended(self) -> tuple[Any, int | None]:
        """Wait for a copy that ends, or whose time is over."""
        while True:
            for pid, (name, deadline) in list(self._running.items()):
                ended, status = os.waitpid(pid, os.WNOHANG)
                code: int | None = os.waitstatus_to_exitcode(status)
                if not ended and time.monotonic() > deadline:
                    with suppress(ProcessLookupError):
                        os.killpg(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
                    ended, code = pid, None
                if ended:
                    with suppress(ProcessLookupError):
                        os.killpg(pid, signal.SIGKILL)  # what its tests left
                    del self._running[pid]
                    return name, code
            time.sleep(_POLL_SECONDS)


def _run_and_exit(task: Callable[[], int], log: Path) -> None:
    """Run the task in a process group of its own, with its output in a file."""
    code = 70
    try:
        os.setpgid(0, 0)
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for stream in (1, 2):
            os.dup2(output, stream)
        code = task()
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        sys.stdout.flush()
        os._exit(code)


def run_tests(paths: Sequence[str], *plugins: object, more: Sequence[str] = ()) -> int:
    """Run pytest once in this process, up to the first failure unless the options say otherwise."""
    imported_before = ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    unused = ["-p", "no:cacheprovider", "-p", "no:schemathesis", "-p", "no:xdist"]
    return int(pytest.main(["-q", *unused, *imported_before, *more, *paths], plugins=list(plugins)))
