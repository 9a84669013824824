"""Run the tests marked `stress` at full size, and keep the table of what they did in docs/reliability.md."""

from __future__ import annotations

import datetime
import os
import platform
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[3]
DOCUMENT: Final = ROOT / "docs" / "reliability.md"
BEGIN: Final = "<!-- table: made by `make stress` -->"
END: Final = "<!-- /table -->"


@dataclass
class Row:
    """The outcomes of all cases of one test function."""

    promise: str
    loads: list[str] = field(default_factory=list)
    outcomes: list[str] = field(default_factory=list)
    count: int = 0
    failed: int = 0
    seconds: float = 0.0

    def cells(self) -> list[str]:
        """Return the row's cells: of many cases, the load and outcome of each kind once."""
        count = f"{self.count:,} " if self.count else ""
        outcome = f"**{self.failed} failed**" if self.failed else "; ".join(dict.fromkeys(self.outcomes))
        return [self.promise, count + "; ".join(dict.fromkeys(self.loads)), outcome, f"{self.seconds:,.0f} s"]


class Collector:
    """A pytest plugin that prints the report of each case at once and collects a row from each test function."""

    def __init__(self) -> None:
        self.rows: dict[str, Row] = {}
        self.cases: set[str] = set()

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Keep the terminal, which is not captured."""
        self._terminal: Any = session.config.pluginmanager.get_plugin("terminalreporter")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Print and add the report of one phase of one case."""
        self.cases.add(report.nodeid)
        if report.failed or report.when == "call":
            self._terminal.write_line(f"\n{report.nodeid} {report.outcome} ({report.when}, {report.duration:.0f} s)")
        if report.failed:
            self._terminal.write_line(report.longreprtext)
        self._terminal.flush()
        properties = dict(report.user_properties)
        function = report.nodeid.partition("[")[0]
        row = self.rows.setdefault(function, Row(str(properties.get("promise", function))))
        row.seconds += report.duration
        row.failed += report.failed
        if report.when == "call":
            row.count += int(str(properties.get("count", 0)))
            row.loads += [str(properties["load"])] if "load" in properties else []
            row.outcomes += [str(properties["outcome"])] if "outcome" in properties else []


def main(arguments: list[str]) -> int:
    """Run the tests and write the table, unless `arguments` chose some of them; return pytest's exit code."""
    os.environ["KHO_TEST_SIZE"] = "full"
    collector = Collector()
    began = time.monotonic()
    # A worker gets the next case when it begins its last one, so that both work to the end.
    options = ["-m", "stress", "-n", "2", "--maxschedchunk", "1", "-p", "no:cacheprovider", *arguments]
    code = pytest.main(options, plugins=[collector])
    table = _table(collector, time.monotonic() - began)
    print(table)
    if not arguments and code in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        text = DOCUMENT.read_text(encoding="utf-8")
        before, rest = text.split(BEGIN)
        _, after = rest.split(END)
        DOCUMENT.write_text(f"{before}{BEGIN}\n{table}\n{END}{after}", encoding="utf-8")
    return int(code)


def _table(collector: Collector, seconds: float) -> str:
    rows = collector.rows.values()
    cells = sorted(row.cells() for row in rows)
    failed = sum(row.failed for row in rows)
    heading = (
        f"Run on {datetime.datetime.now(datetime.UTC).date()}, in {seconds / 60:.0f} minutes: "
        f"{len(collector.cases)} cases, {failed} failed; {platform.machine()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}."
    )
    lines = [["Promise", "Load", "Outcome", "Time"], ["---"] * 4, *cells]
    return "\n".join([heading, "", *(f"| {' | '.join(line)} |" for line in lines)])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
