"""The public conformance suite and the public Inspector against the MCP endpoint, through the gateway's events.

Both come from npm, pinned in package-lock.json next to this file, with the Node that they need.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.conformance import authorization, inspector

HERE: Final = Path(__file__).parent
TOOLS: Final = Path(sys.prefix) / "share" / "conformance"
MODULES: Final = TOOLS / "node_modules"
NODE: Final = MODULES / "node" / "bin" / "node"
SUITE: Final = MODULES / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
REVISIONS: Final = ("2026-07-28", "2025-11-25")


def main() -> int:
    """Run the suite for each revision and for authorization, then the Inspector. Return 0 if nothing failed."""
    _install()
    os.environ["KHO_LOG_FILE"] = str(TOOLS / "kho.log")
    from tests.conformance.server import serving  # its import configures the log

    with serving() as address:
        failed = [
            f"{revision} at {path}"
            for path in ("/mcp", "/mcp/memory")
            for revision in REVISIONS
            if _run_suite(address + path, revision)
        ]
    if authorization.run([str(NODE), str(SUITE)]):
        failed.append("authorization server")
    inspector.run(NODE, MODULES)
    if failed:
        print(f"Not conforming to: {', '.join(failed)}")
    return len(failed)


def _run_suite(url: str, revision: str) -> int:
    print(f"\n=== {revision} at {url}", flush=True)
    expected = HERE / f"{revision}.yaml"
    command = [str(NODE), str(SUITE), "server", "--url", url, "--requirements", revision]
    command += ["--expected-failures", str(expected)] if expected.exists() else []
    return subprocess.run(command, check=False, timeout=300, cwd=TOOLS).returncode


def _install() -> None:
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


if __name__ == "__main__":
    sys.exit(main())
