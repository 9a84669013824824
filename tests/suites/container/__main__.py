"""Run the Dockerfile's steps in a clean root of Debian, and the container's settings on it.

Docker is not needed; root and debootstrap are. Without them the suite ends with the reason.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path


def main() -> int:
    """Return 0 if no test failed."""
    missing = [name for name in ("debootstrap", "unshare", "chroot", "setpriv") if shutil.which(name) is None]
    if missing:
        sys.exit(f"Not run: {', '.join(missing)} is not installed (apt install debootstrap util-linux).")
    if os.geteuid():
        sys.exit("Not run: debootstrap and chroot need root.")
    command = [sys.executable, "-m", "pytest", str(Path(__file__).parent), "-n", "0", *sys.argv[1:]]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
