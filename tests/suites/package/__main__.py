"""Build the wheel, install it outside the checkout with each Python that this machine has, and use it as people do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.suites.conformance.tools import install
from tests.suites.package.installation import interpreters


def main() -> int:
    """Return 0 if no test failed."""
    install()
    print(f"Python {', '.join(interpreters())}", flush=True)
    command = [sys.executable, "-m", "pytest", str(Path(__file__).parent), "-n", "0", *sys.argv[1:]]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
