"""Words and docstring starts that the project's language rules exclude: `python -m tests.wording [path …]`.

CONTRIBUTING.md has the rules. Exempt are this list, test data, and the prompts that language models read.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).resolve().parents[1]
JAVASCRIPT: Final = (".js", ".mjs")
SUFFIXES: Final = (".py", ".md", ".yaml", *JAVASCRIPT)
EXEMPT: Final = (
    "infra/clients/console/strings/vi/",
    "tests/wording.py",
    "tests/data/",
    "tests/suites/conformance/2025-11-25.yaml",
    "shared/answering/prompts.py",
)

WORDS: Final = {
    "door": r"(?<!\")\bdoors?\b(?!-)",
    "seed 00x": r"\bseeds? ?00\d\b",
    "anew": r"(?<!--)\banew\b",
    "beside": r"\bbeside\b",
    "in place of": r"\bin place of\b",
    "stand in": r"\bst(?:ands?|ood) in\b(?! the way)",
    "bear": r"\b(?:bears|bearing|bore)\b",
    "whoever": r"(?<![~|])\b(?:whoever|whatever|nobody|somebody|everybody)\b",
    "everyone": r"(?<!#)\beveryone\b",
    "is told": r"\b(?:is|are|was|were|be|been) (?:told|said)\b",
    "is no": r"(?<!there )\bis no (?!(?:longer|more)\b)",
    "machine is gone": r"\bthe machine is gone\b",
    "inversion": r"(?<=[.] )Of (?:these|those), ",
    "brought in": r"\bbrought? in(?:to being)?\b",
}
STARTS: Final = re.compile(
    r"(What|Whether|Whoever|Who|Whose|Whom|How|Where|Why|Which|Let\b.*\bbe|Have\b.*\b(?:done|been))\b", re.DOTALL
)
START: Final = "docstring start"


def main(paths: list[str]) -> int:
    """Print each violation as path:line, and return 1 if there is any."""
    counts: Counter[str] = Counter()
    for path in _files(paths):
        for line, rule, text in violations(path, (ROOT / path).read_text(encoding="utf-8")):
            counts[rule] += 1
            print(f"{path}:{line}: {rule}: {text.strip()[:120]}")
    print(", ".join(f"{rule}: {number}" for rule, number in counts.most_common()) or "No violations.")
    return int(bool(counts))


def violations(path: str, text: str) -> Iterator[tuple[int, str, str]]:
    """Yield the line, the rule and the text of each violation in a file."""
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        for rule, pattern in WORDS.items():
            if re.search(pattern, line, re.IGNORECASE):
                yield number, rule, line
    starts = _docstrings(text) if path.endswith(".py") else _comments(lines) if path.endswith(JAVASCRIPT) else ()
    for number, start in starts:
        if STARTS.match(start):
            yield number, START, start


def _docstrings(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the first paragraph of each docstring and of each string below a constant."""
    for node in ast.walk(ast.parse(text)):
        for child in getattr(node, "body", ()) if isinstance(getattr(node, "body", ()), list) else ():
            match child:
                case ast.Expr(value=ast.Constant(value=str(docstring))):
                    # A method's or server's module docstring begins with its name and a colon.
                    yield child.lineno, re.sub(r"^[\w-]+(?:/[\w/]+)?: ", "", docstring).partition("\n\n")[0]


def _comments(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Yield the line and the beginning of each comment that has lines of its own, the docstrings of JavaScript."""
    for number, (before, line) in enumerate(pairwise(["", *lines]), 1):
        if line.lstrip().startswith("// ") and not before.lstrip().startswith("//"):
            yield number, line.lstrip(" /")


def _files(paths: list[str]) -> list[str]:
    listed = subprocess.run(["git", "ls-files", "-z", "--", *paths], cwd=ROOT, capture_output=True, check=True)
    names = listed.stdout.decode().split("\0")
    return [name for name in names if name.endswith(SUFFIXES) and not name.startswith(EXEMPT)]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
