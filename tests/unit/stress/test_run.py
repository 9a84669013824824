"""A run of `make stress`."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from tests.suites.stress.__main__ import ROOT

if TYPE_CHECKING:
    from pathlib import Path

CASES = """
import pytest

@pytest.fixture
def broken():
    raise RuntimeError("no peer")

@pytest.mark.stress
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_race(seed, record_property):
    record_property("load", "3 seeds")
    record_property("outcome", "0 lost")
    assert seed != 1, "one was lost"

@pytest.mark.stress
def test_peer(broken):
    pass

@pytest.mark.stress
def test_crash(record_property):
    record_property("count", 1000)
    record_property("load", "crashes")
    record_property("outcome", "none lost")
"""


def test_run_continues_after_failures(tmp_path: Path) -> None:
    """A run reports each failure when it occurs, runs the other cases, counts all in the table, and fails."""
    (tmp_path / "test_cases.py").write_text(CASES)
    command = [sys.executable, "-m", "tests.suites.stress", "-c", "pyproject.toml", "-n", "0", str(tmp_path)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 1, run.stderr
    lines = run.stdout.splitlines()
    reports = [line.partition("::")[2] for line in lines if line.endswith(" s)")]
    assert [report.partition(" (")[0] for report in reports] == [
        "test_race[1] failed",
        "test_race[2] passed",
        "test_race[3] passed",
        "test_peer failed",
        "test_crash passed",
    ]
    assert run.stdout.index("one was lost") < run.stdout.index("test_race[2]")
    assert run.stdout.index("no peer") < run.stdout.index("test_crash passed")
    assert "5 cases, 2 failed" in run.stdout
    rows = [line.rpartition("::")[2] for line in lines if line.startswith("| ")][2:]
    assert [row.rpartition(" | ")[0] for row in rows] == [
        "test_crash | 1,000 crashes | none lost",
        "test_peer |  | **1 failed**",
        "test_race | 3 seeds | **1 failed**",
    ]
