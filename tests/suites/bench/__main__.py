"""Run all benchmarks or those named, print their tables, and write the tables of a full run to README.md."""

from __future__ import annotations

import argparse
import datetime
import importlib
import os
import platform
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.helpers.suite_packages import SHARE, python_packages
from tests.suites.bench.size import SMOKE, VARIABLE

if TYPE_CHECKING:
    from tests.suites.bench.tables import BenchTable

HERE: Final = Path(__file__).parent
README: Final = HERE / "README.md"
WORKER: Final = "KHO_BENCH_WORKER"
"""Set for the process that runs one benchmark."""


@dataclass(frozen=True, slots=True)
class Result:
    """The end of one benchmark."""

    name: str
    seconds: float
    failed: bool


def main() -> int:
    """Run each benchmark in a process of its own. Return the number of benchmarks that failed."""
    there = benchmarks()
    parser = argparse.ArgumentParser(prog="python -m tests.suites.bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=f"one of: {', '.join(there)}")
    parser.add_argument("--smoke", action="store_true", help="run the smallest sizes, and leave README.md as it is")
    options = parser.parse_args()
    unknown = set(options.names) - set(there)
    if unknown:
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}")
    if os.environ.get(WORKER):
        measure(options.names[0])
        return 0
    path = str(python_packages(Path(__file__).with_name("requirements.lock"), SHARE / "peers"))
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [path, os.environ.get("PYTHONPATH")]))
    started = time.perf_counter()
    # Small sizes measure nothing, so two benchmarks may share the machine.
    with ThreadPoolExecutor(2 if options.smoke else 1) as pool:
        results = list(pool.map(lambda name: _run(name, smoke=options.smoke), options.names or there))
    for result in sorted(results, key=lambda each: -each.seconds):
        print(f"{result.name:16} {result.seconds:7.1f} s{'  failed' if result.failed else ''}")
    print(f"{'all':16} {time.perf_counter() - started:7.1f} s")
    failed = [result.name for result in results if result.failed]
    if failed:
        print(f"Failed: {', '.join(failed)}")
    return len(failed)


def benchmarks() -> list[str]:
    """Return the names of the modules that define `tables`."""
    return [file.stem for file in sorted(HERE.glob("*.py")) if "\ndef tables(" in file.read_text(encoding="utf-8")]


def measure(name: str) -> None:
    """Run the benchmark in this process, print its tables, and write those of a complete full run to README.md."""
    tables = importlib.import_module(f"tests.suites.bench.{name}").tables()
    section = _section(tables)
    print(section, flush=True)
    if SMOKE:
        return
    if all(table.columns for table in tables):
        _write(name, section)
    else:
        print("README.md keeps its tables of an earlier run, because not everything was measured.", flush=True)


def _run(name: str, *, smoke: bool) -> Result:
    environment = os.environ | {WORKER: "1", VARIABLE: "smoke" if smoke else "full"}
    command = [sys.executable, "-m", "tests.suites.bench", name]
    started = time.perf_counter()
    done = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    seconds = time.perf_counter() - started
    failed = done.returncode != 0
    print(f"## {name}: {'failed after' if failed else ''} {seconds:.1f} s\n\n{done.stdout}", flush=True)
    return Result(name, seconds, failed)


def _section(tables: list[BenchTable]) -> str:
    measured = f"Measured on {datetime.datetime.now(datetime.UTC).date()}: {platform.machine()}, "
    measured += f"{os.cpu_count()} cores, Python {platform.python_version()}.\n"
    measured += "This was a smoke run of the smallest sizes: its numbers say nothing.\n" if SMOKE else ""
    return "\n".join([measured, *(table.markdown() for table in tables)])


def _write(name: str, section: str) -> None:
    begin, end = f"<!-- {name}: made by `make bench` -->", f"<!-- /{name} -->"
    text = README.read_text(encoding="utf-8")
    if begin not in text:
        text = f"{text.rstrip()}\n\n## {name.replace('_', ' ').capitalize()}\n\n{begin}\n{end}\n"
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    README.write_text(f"{before}{begin}\n{section}{end}{after}", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
