"""`make browser`: fetch what the browser tests need, and run them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.browser.installation import environment, fetch

_BOTH_CORES: Final = ("-n", "2")


def main() -> int:
    """Run them; 0 if nothing failed."""
    fetch()
    command = [sys.executable, "-m", "pytest", str(Path(__file__).parent), *(sys.argv[1:] or _BOTH_CORES)]
    return subprocess.run(command, check=False, env=environment()).returncode


if __name__ == "__main__":
    sys.exit(main())
