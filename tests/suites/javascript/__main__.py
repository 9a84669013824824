"""`make check-js`: fetch the tools of the console's package-lock.json, once, and run them on its JavaScript."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

from infra.clients.console.bundle import HERE as CONSOLE
from tests.helpers.suite_packages import SHARE, node, npm_packages
from tests.suites.javascript.method_types import method_types

ROOT: Final = Path(__file__).resolve().parents[3]
TARGET: Final = SHARE / "console"
_TESTS: Final = ROOT / "tests" / "unit" / "clients" / "console"
_WIDTH: Final = 120
"""Columns of a line, except texts of `strings/`. The formatter leaves templates and comments as they are."""


def main() -> int:
    """Run each tool; 0 if all are content."""
    modules = npm_packages(CONSOLE, TARGET)
    (TARGET / "methods.d.ts").write_text(method_types())
    tests = map(str, sorted(_TESTS.glob("*.test.mjs")))
    commands = (
        [
            node(),
            str(modules / "@biomejs" / "biome" / "bin" / "biome"),
            "ci",
            "--colors=off",
            "--error-on-warnings",
            ".",
        ],
        [node(), str(modules / "typescript" / "bin" / "tsc"), "--project", str(ROOT)],
        [node(), "--test", "--test-reporter=dot", "--import", (_TESTS / "setup.mjs").as_uri(), *tests],
    )
    wide = _wide_lines()
    print("\n".join(wide), end="\n" if wide else "")
    return int(any([bool(wide), *(subprocess.run(each, check=False, cwd=ROOT).returncode for each in commands)]))


def _wide_lines() -> list[str]:
    files = [*CONSOLE.rglob("*.js"), *_TESTS.glob("*.mjs")]
    return [
        f"{file.relative_to(ROOT)}:{number}: {len(line)} columns, more than {_WIDTH}"
        for file in files
        if not {"vendor", "strings"} & set(file.parts)
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        if len(line) > _WIDTH
    ]


if __name__ == "__main__":
    sys.exit(main())
