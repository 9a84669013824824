"""Run the suite: `sam validate --lint`, `sam build`, and the tests of the processed template."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.suites.deployment.sam_build import build_clone


def main() -> int:
    """Return 0 if the template passes."""
    failed = pytest.main(["-n", "0", str(Path(__file__).parent)])
    if failed:
        return int(failed)
    with build_clone() as build:
        print(f"sam validate --lint and sam build passed: {sum(1 for _ in build.iterdir())} artifacts.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
