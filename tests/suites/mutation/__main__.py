"""Mutate the modules that guard promises, and list the mutants that no test notices: `python -m tests.suites.mutation`.

The first run records which tests run each line. A mutant is then a copy of this process in which one module has another
source; it runs the tests of the changed lines, the shortest first. Results are kept in `.mutation/`, so a run that was
interrupted goes on, and a changed module is measured again. `README.md` gets the table.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import os
import re
import sys
import tomllib
from collections import Counter, defaultdict
from functools import partial
from itertools import groupby
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.suites.mutation.copies import PREPARED, Copies, MutantFinder, Selection, run_tests
from tests.suites.mutation.mutants import Mutant, mutants_of
from tests.suites.mutation.subjects import MODULES, TESTS
from tests.suites.mutation.tracing import LineTracer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

ROOT: Final = Path(__file__).resolve().parents[3]
STATE: Final = ROOT / ".mutation"
RECORDS: Final = STATE / "tests.json"
RESULTS: Final = STATE / "results.jsonl"
LOG: Final = STATE / "tests.log"
REASONS: Final = Path(__file__).with_name("survivors.toml")
README: Final = Path(__file__).with_name("README.md")
BEGIN: Final = "<!-- table: made by `python -m tests.suites.mutation` -->"
END: Final = "<!-- /table -->"
_TRACE_SECONDS: Final = 3600.0
_FILES: Final = 3
_MORE_FILES: Final = 10
"""The most files whose tests run for a mutant, and for one that survived these."""
_TEST_SECONDS: Final = 40.0
"""The most that the tests of one mutant take without it."""
_IMPORTING_TESTS: Final = 10
_BY_CHANCE: Final = re.compile("concurrent|threads|at_the_same_time")
"""The names of tests that race threads, and so may or may not meet what a condition prevents."""
_EXTRA_SECONDS: Final = 90.0


def main(arguments: list[str]) -> int:
    """Run the mutants of the given modules, or of all, and write the table after a run of all."""
    parser = argparse.ArgumentParser(prog="python -m tests.suites.mutation", description=__doc__)
    parser.add_argument("modules", nargs="*", default=list(MODULES), help="paths such as shared/aws/dynamodb.py")
    parser.add_argument("--each", type=int, default=24, help="mutants of a module, besides all of its conditions")
    parser.add_argument("--copies", type=int, default=1, help="processes at the same time")
    parser.add_argument("--trace", nargs="*", help="record again which lines the tests run, or the tests at some paths")
    parser.add_argument("--survivors", action="store_true", help="run survivors again, with the tests of more files")
    options = parser.parse_args(arguments)
    os.chdir(ROOT)
    STATE.mkdir(exist_ok=True)
    for name in PREPARED:
        importlib.import_module(name)
    if options.trace is not None or not RECORDS.exists():
        trace(options.trace or TESTS)
    records = _records()
    subjects = {module: (ROOT / module).read_text(encoding="utf-8") for module in options.modules}
    chosen = {module: _sample(mutants_of(source), options.each) for module, source in subjects.items()}
    known = _results()
    pending = [
        (module, mutant)
        for module, mutants in chosen.items()
        for mutant in mutants
        if (found := known.get(_key(module, mutant))) is None or (options.survivors and found["outcome"] == "survived")
    ]
    with RESULTS.open("a", encoding="utf-8") as results:
        tasks = _tasks(pending, subjects, records, _MORE_FILES if options.survivors else _FILES)
        for number, (result, code) in enumerate(Copies(options.copies, LOG).run(tasks), 1):
            is_green = code in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
            result["outcome"] = "too slow" if code is None else "survived" if is_green else "noticed"
            results.write(json.dumps(result) + "\n")
            results.flush()
            print(f"{number}/{len(pending)} {result['outcome']}: {result['module']}:{result['line']} {result['name']}")
    table = _table({module: mutants_of(source) for module, source in subjects.items()})
    print(table)
    if set(chosen) == set(MODULES):
        before, rest = README.read_text(encoding="utf-8").split(BEGIN)
        README.write_text(f"{before}{BEGIN}\n\n{table}\n\n{END}{rest.split(END)[1]}", encoding="utf-8")
    return 0


def trace(paths: Sequence[str]) -> None:
    """Record which lines the tests at some paths run. Keep the records of other tests."""

    def task() -> int:
        tracer = LineTracer(ROOT, MODULES)
        run_tests(paths, tracer, more=["-m", "not stress", "--continue-on-collection-errors"])
        others = {test: record for test, record in _records().items() if not test.startswith(tuple(paths))}
        RECORDS.write_text(json.dumps(others | tracer.tests), encoding="utf-8")
        return 0

    ((_, code),) = Copies(1, LOG).run([("trace", _TRACE_SECONDS, task)])
    if code != 0:
        raise SystemExit(f"The tests could not be traced: see {LOG}.")


def _records() -> dict[str, Any]:
    records: dict[str, Any] = json.loads(RECORDS.read_text(encoding="utf-8")) if RECORDS.exists() else {}
    return records


def _tasks(
    pending: Iterable[tuple[str, Mutant]], subjects: dict[str, str], records: dict[str, Any], most: int
) -> Iterator[tuple[dict[str, Any], float, Any]]:
    """Iterate over the mutants that are not known yet, each with its longest duration and what its copy does."""
    for module, mutants in groupby(pending, key=lambda pair: pair[0]):
        tests = _tests_by_line(module, records)
        for _, mutant in mutants:
            chosen = _chosen_tests(module, mutant, tests, records, most)
            result = {
                "key": _key(module, mutant),
                "module": module,
                "line": mutant.line,
                "kind": mutant.kind,
                "name": mutant.name,
                "tests": len(chosen),
            }
            seconds = 3 * sum(records[test]["seconds"] for test in chosen) + _EXTRA_SECONDS
            yield result, seconds, partial(_run_mutant, module, mutant.applied(subjects[module]), chosen)


def _run_mutant(module: str, source: str, tests: list[str]) -> int:
    if not tests:
        return 0
    name = module.removeprefix("functions/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    sys.meta_path.insert(0, MutantFinder(name, ROOT / module, source))
    files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
    return run_tests(files, Selection(tests), more=["-x"])


def _tests_by_line(module: str, records: dict[str, Any]) -> dict[int, set[str]]:
    """Return the tests that run each line of a module, apart from those that fail without mutation."""
    tests: dict[int, set[str]] = defaultdict(set)
    for test, record in records.items():
        lines = record["lines"].get(module, ())
        if lines and record["passed"] and (ROOT / test.partition("::")[0]).exists():
            for line in lines:
                tests[line].add(test)
    return tests


def _chosen_tests(
    module: str, mutant: Mutant, tests: dict[int, set[str]], records: dict[str, Any], most: int
) -> list[str]:
    """Return the tests that run the mutated lines, of `most` files at most: those that mirror the module, short ones.

    Lines that no test runs may run when a module is imported: a few tests of the module suffice for them.
    """
    lines = tests if mutant.at_import else mutant.lines
    found = {test for line in lines for test in tests.get(line, ())}
    if mutant.at_import:  # a model's limit is checked without running a line of the module
        files_of_module = {test.partition("::")[0] for test in found}
        found = {test for test in records if test.partition("::")[0] in files_of_module and records[test]["passed"]}
    if mutant.kind == "condition":
        found = {test for test in found if not _BY_CHANCE.search(test)}
    distance = {test: (_distance(module, test), records[test]["seconds"], test) for test in found or _all(tests)}
    chosen: list[str] = []
    files: set[str] = set()
    seconds = 0.0
    for test in sorted(distance, key=lambda each: distance[each])[: None if found else _IMPORTING_TESTS]:
        file = test.partition("::")[0]
        if (file in files or len(files) < most) and seconds + records[test]["seconds"] <= _TEST_SECONDS:
            seconds += records[test]["seconds"]
            files.add(file)
            chosen.append(test)
    return sorted(chosen, key=lambda each: records[each]["seconds"])


def _all(tests: dict[int, set[str]]) -> set[str]:
    return {test for each in tests.values() for test in each}


def _distance(module: str, test: str) -> int:
    """Return 0 for a test of the module's name, 1 for one of its folder, and 2 for others."""
    file = PurePosixPath(test.partition("::")[0])
    subject = PurePosixPath(module)
    return 0 if subject.stem in file.stem else 1 if subject.parent.name in file.parts else 2


def _sample(mutants: list[Mutant], number: int) -> list[Mutant]:
    """Return all mutants of conditions and a sample of the others, always the same one."""
    others = sorted((each for each in mutants if each.kind != "condition"), key=lambda each: _digest(each.name))
    chosen = {each.name for each in others[:number]}
    return [each for each in mutants if each.kind == "condition" or each.name in chosen]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _key(module: str, mutant: Mutant) -> str:
    """Return the name of a result. It holds as long as the module and the mutant are the same."""
    return _digest("\n".join((module, (ROOT / module).read_text(encoding="utf-8"), mutant.name)))


def _results() -> dict[str, dict[str, Any]]:
    if not RESULTS.exists():
        return {}
    lines = map(json.loads, RESULTS.read_text(encoding="utf-8").splitlines())
    return {line["key"]: line for line in lines}


def _table(subjects: dict[str, list[Mutant]]) -> str:
    """Return the table of the mutants that were run, and the list of survivors with their reasons."""
    reasons = tomllib.loads(REASONS.read_text(encoding="utf-8")) if REASONS.exists() else {}
    known = _results()
    rows, listed = [], []
    totals: Counter[str] = Counter()
    for module, mutants in subjects.items():
        counts: Counter[str] = Counter()
        for mutant in mutants:
            result = known.get(_key(module, mutant))
            if result is None:
                continue
            reason = reasons.get(module, {}).get(mutant.name, "")
            survived = result["outcome"] == "survived"
            counts["all"] += 1
            counts["noticed"] += not survived
            counts["equivalent"] += survived and reason.startswith("equivalent")
            if survived:
                listed.append(f"| `{module}:{mutant.line}` | `{_cell(mutant.name)}` | {reason or 'no test yet'} |")
        totals += counts
        rows.append(f"| `{module}` | {_cells(counts)} |")
    return "\n".join(
        [
            "| Module | Mutants | Noticed | Equivalent | Share |",
            "| --- | --: | --: | --: | --: |",
            *rows,
            f"| **{len(rows)} modules** | {_cells(totals)} |",
            "",
            "| Survivor | Mutation | Reason |",
            "| --- | --- | --- |",
            *listed,
        ]
    )


def _cells(counts: Counter[str]) -> str:
    relevant = counts["all"] - counts["equivalent"]
    share = f"{100 * counts['noticed'] / relevant:.0f} %" if relevant else ""
    return f"{counts['all']} | {counts['noticed']} | {counts['equivalent']} | {share}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("`", "'")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
