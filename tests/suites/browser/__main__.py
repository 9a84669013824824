"""`make browser`: fetch what the browser tests need, and run them, or those that pytest's arguments name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.suites.browser.installation import environment, fetch

_BOTH_CORES: Final = ("-n", "2")


def main() -> int:
    """Run them; 0 if nothing failed."""
    fetch()
    arguments = sys.argv[1:] or list(_BOTH_CORES)
    if not any(Path(each.partition("::")[0]).exists() for each in arguments):
        arguments.append(str(Path(__file__).parent))
    command = [sys.executable, "-m", "pytest", *arguments]
    return subprocess.run(command, check=False, env=environment()).returncode


if __name__ == "__main__":
    sys.exit(main())
