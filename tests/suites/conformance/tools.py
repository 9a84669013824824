"""The public conformance suite and the public Inspector, from npm, pinned in package-lock.json next to this file."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.helpers.suite_packages import SHARE, npm_packages

if TYPE_CHECKING:
    from collections.abc import Sequence

HERE: Final = Path(__file__).parent
TOOLS: Final = SHARE / "conformance"
NODE: Final = TOOLS / "node_modules" / "node" / "bin" / "node"
SUITE: Final = TOOLS / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
_INSPECTOR: Final = TOOLS / "node_modules" / "@modelcontextprotocol" / "inspector"


def install() -> None:
    """Fetch the tools, with the Node that they need, unless they are there."""
    npm_packages(HERE, TOOLS, scripts=True)


def inspect(target: Sequence[str], method: str, *arguments: str) -> Any:
    """Return the result of a method that the Inspector's command line calls. A failure raises."""
    entry = next(iter(json.loads((_INSPECTOR / "package.json").read_text())["bin"].values()))
    command = [
        str(NODE),
        str(_INSPECTOR / entry),
        "--cli",
        *target,
        "--connect-timeout",
        "0",
        "--method",
        method,
        *arguments,
    ]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr + done.stdout
    return json.loads(done.stdout)
