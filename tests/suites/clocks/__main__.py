"""Fetch libfaketime from Debian, run the tests of wrong clocks, and keep their table in docs/reliability.md."""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path
from typing import Final

import pytest

from tests.suites.clocks.faketime import fetch, find
from tests.suites.clocks.test_wrong_clock import DIRECTIONS

DOCUMENT: Final = Path(__file__).resolve().parents[3] / "docs" / "reliability.md"
BEGIN: Final = "<!-- clocks: made by `make clocks` -->"
END: Final = "<!-- /clocks -->"


class Collector:
    """A pytest plugin that collects the outcome of each case and direction."""

    def __init__(self) -> None:
        self.outcomes: dict[str, dict[str, str]] = defaultdict(dict)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add the outcome of one case."""
        properties = {name: str(value) for name, value in report.user_properties}
        if report.when == "call" and "case" in properties:
            outcome = "**failed**" if report.failed else properties["outcome"]
            self.outcomes[properties["case"]][properties["direction"]] = outcome


def main(arguments: list[str]) -> int:
    """Run the tests and write the table, unless `arguments` chose some of them; return pytest's exit code."""
    if find() is None:
        fetch()
    collector = Collector()
    options = [str(Path(__file__).parent), "-n", "2", "--dist", "loadgroup", "-p", "no:cacheprovider", *arguments]
    code = pytest.main(options, plugins=[collector])
    if not arguments and code in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        lines = [["Case", *(f"{each.capitalize()}, then right" for each in DIRECTIONS)], ["---"] * 3]
        lines += [
            [case, *(by_direction.get(each, "") for each in DIRECTIONS)]
            for case, by_direction in sorted(collector.outcomes.items())
        ]
        table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        text = DOCUMENT.read_text(encoding="utf-8")
        before, rest = text.split(BEGIN)
        _, after = rest.split(END)
        DOCUMENT.write_text(f"{before}{BEGIN}\n{table}\n{END}{after}", encoding="utf-8")
    return int(code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
