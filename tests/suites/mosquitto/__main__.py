"""Fetch mosquitto from Debian, where it is not installed, and run the tests that need it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.suites.mosquitto.broker import fetch, find


def main() -> int:
    """Run them; 0 if nothing failed."""
    if find() is None:
        fetch()
    return subprocess.run(
        [sys.executable, "-m", "pytest", str(Path(__file__).parent), *sys.argv[1:]], check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
