"""The tests that run each line of the mutated modules, and the time that each takes, in one run without mutation."""

from __future__ import annotations

import sys
import threading
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path
    from types import FrameType


class LineTracer:
    """A pytest plugin that records the lines of some files that each test runs, in every thread."""

    def __init__(self, root: Path, modules: Iterable[str]) -> None:
        self._modules = {str(root / module): module for module in modules}
        self._lines: set[tuple[str, int]] = set()
        self.tests: dict[str, dict[str, Any]] = {}

    def pytest_sessionstart(self) -> None:
        """Trace from now on."""
        threading.settrace(self._trace)
        sys.settrace(self._trace)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self) -> Any:
        """Begin the record of a test."""
        self._lines = set()
        sys.settrace(self._trace)  # a test may have ended the trace
        return (yield)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add the lines, the duration and a failure."""
        test = self.tests.setdefault(report.nodeid, {"seconds": 0.0, "passed": True, "lines": {}})
        test["seconds"] += report.duration if report.when == "call" else 0.0
        test["passed"] &= report.passed
        if report.when == "teardown":
            lines: dict[str, list[int]] = defaultdict(list)
            for file, line in sorted(self._lines.copy()):
                lines[self._modules[file]].append(line)
            test["lines"] = lines

    def _trace(self, frame: FrameType, _event: str, _argument: object) -> Callable[..., Any] | None:
        if frame.f_code.co_filename not in self._modules:
            return None
        return self._trace_lines

    def _trace_lines(self, frame: FrameType, event: str, _argument: object) -> Callable[..., Any]:
        if event == "line":
            self._lines.add((frame.f_code.co_filename, frame.f_lineno))
        return self._trace_lines
