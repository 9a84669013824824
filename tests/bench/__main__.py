"""Run every bench, or the one named; print their tables, and keep them in README.md."""

from __future__ import annotations

import datetime
import importlib
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tests.bench.tables import Table

README: Final = Path(__file__).with_name("README.md")


def main(name: str | None) -> None:
    """Run the bench `name`, else each in a process of its own."""
    if name:
        made = _part(importlib.import_module(f"tests.bench.{name}").tables())
        print(made, flush=True)
        _keep(name, made)
        return
    for file in sorted(README.parent.glob("*.py")):
        if "\ndef tables(" in file.read_text(encoding="utf-8"):
            subprocess.run([sys.executable, "-m", "tests.bench", file.stem], check=True)


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


main(sys.argv[1] if len(sys.argv) > 1 else None)
