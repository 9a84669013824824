"""Run the tests marked `stress` at full size, and keep the table of what they did in docs/reliability.md."""

from __future__ import annotations

import datetime
import os
import platform
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT: Final = Path(__file__).resolve().parents[2]
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
    """A pytest plugin that collects a row from each test function."""

    def __init__(self) -> None:
        self.rows: dict[str, Row] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add the report of one phase of one case."""
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
    options = ["-m", "stress", "-n", "2", "-p", "no:cacheprovider", *arguments]
    code = pytest.main(options, plugins=[collector])
    table = _table(collector.rows.values(), time.monotonic() - began)
    print(table)
    if not arguments:
        text = DOCUMENT.read_text(encoding="utf-8")
        before, rest = text.split(BEGIN)
        _, after = rest.split(END)
        DOCUMENT.write_text(f"{before}{BEGIN}\n{table}\n{END}{after}", encoding="utf-8")
    return int(code)


def _table(rows: Iterable[Row], seconds: float) -> str:
    cells = sorted(row.cells() for row in rows)
    heading = (
        f"Run on {datetime.datetime.now(datetime.UTC).date()}, in {seconds / 60:.0f} minutes: {platform.machine()}, "
        f"{os.cpu_count()} cores, Python {platform.python_version()}."
    )
    lines = [["Promise", "Load", "Outcome", "Time"], ["---"] * 4, *cells]
    return "\n".join([heading, "", *(f"| {' | '.join(line)} |" for line in lines)])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
