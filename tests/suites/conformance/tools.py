"""The public conformance suite and the public Inspector, from npm, pinned in package-lock.json next to this file."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

HERE: Final = Path(__file__).parent
TOOLS: Final = Path(sys.prefix) / "share" / "conformance"
NODE: Final = TOOLS / "node_modules" / "node" / "bin" / "node"
SUITE: Final = TOOLS / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
_INSPECTOR: Final = TOOLS / "node_modules" / "@modelcontextprotocol" / "inspector"


def install() -> None:
    """Fetch the tools, with the Node that they need, unless they are there."""
    wanted = hashlib.sha256((HERE / "package-lock.json").read_bytes()).hexdigest()
    stamp = TOOLS / "installed"
    if stamp.exists() and stamp.read_text() == wanted:
        return
    npm = shutil.which("npm", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if npm is None:
        raise SystemExit("npm is needed to fetch the suite.")
    TOOLS.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(HERE / name, TOOLS / name)
    subprocess.run([npm, "ci", "--silent", "--no-audit", "--no-fund", "--prefix", str(TOOLS)], check=True)
    stamp.write_text(wanted)


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
