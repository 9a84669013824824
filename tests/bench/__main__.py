"""Run every bench, or those named; print their tables, and keep them in README.md."""

from __future__ import annotations

import datetime
import importlib
import os
import pkgutil
import platform
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import tests.bench

if TYPE_CHECKING:
    from tests.bench.tables import Table

README: Final = Path(__file__).with_name("README.md")


def main(names: list[str]) -> None:
    """Run the benches `names`, else all; each keeps its own part of the README."""
    for found in pkgutil.iter_modules(tests.bench.__path__):
        if found.name.startswith("_") or (names and found.name not in names):
            continue
        module = importlib.import_module(f"tests.bench.{found.name}")
        if hasattr(module, "tables"):
            made = _part(module.tables())
            print(made, flush=True)
            _keep(found.name, made)


def _part(tables: list[Table]) -> str:
    measured = f"Measured on {datetime.datetime.now(datetime.UTC).date()}: {platform.machine()}, "
    measured += f"{os.cpu_count()} cores, Python {platform.python_version()}.\n"
    return "\n".join([measured, *(table.markdown() for table in tables)])


def _keep(name: str, made: str) -> None:
    begin, end = f"<!-- {name}: made by `make bench` -->", f"<!-- /{name} -->"
    text = README.read_text(encoding="utf-8")
    if begin not in text:
        text = f"{text.rstrip()}\n\n## {name.replace('_', ' ').capitalize()}\n\n{begin}\n{end}\n"
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    README.write_text(f"{before}{begin}\n{made}{end}{after}", encoding="utf-8")


main(sys.argv[1:])
