"""The public conformance suite and the public Inspector against the MCP endpoint, through the gateway's events."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Final

from tests.suites.conformance import authorization, inspector
from tests.suites.conformance.tools import HERE, NODE, SUITE, TOOLS, install

REVISIONS: Final = ("2026-07-28", "2025-11-25")


def main() -> int:
    """Run the suite for each revision and for authorization, then the Inspector. Return 0 if nothing failed."""
    install()
    os.environ["KHO_LOG_FILE"] = str(TOOLS / "kho.log")
    from tests.suites.conformance.server import serving  # its import configures the log

    with serving() as address:
        failed = [
            f"{revision} at {path}"
            for path in ("/mcp", "/mcp/memory")
            for revision in REVISIONS
            if _run_suite(address + path, revision)
        ]
    if authorization.run([str(NODE), str(SUITE)]):
        failed.append("authorization server")
    inspector.run()
    if failed:
        print(f"Not conforming to: {', '.join(failed)}")
    return len(failed)


def _run_suite(url: str, revision: str) -> int:
    print(f"\n=== {revision} at {url}", flush=True)
    expected = HERE / f"{revision}.yaml"
    command = [str(NODE), str(SUITE), "server", "--url", url, "--requirements", revision]
    command += ["--expected-failures", str(expected)] if expected.exists() else []
    return subprocess.run(command, check=False, timeout=300, cwd=TOOLS).returncode


if __name__ == "__main__":
    sys.exit(main())
