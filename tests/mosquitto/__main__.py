"""Fetch mosquitto from Debian, where it is not installed, and run the tests that need it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.mosquitto.broker import FETCHED, find

_PACKAGES: Final = ("mosquitto", "libcjson1", "libdlt2", "libwebsockets17", "libwrap0")


def main() -> int:
    """Run them; 0 if nothing failed."""
    if find() is None:
        _fetch()
    return subprocess.run(
        [sys.executable, "-m", "pytest", str(Path(__file__).parent), *sys.argv[1:]], check=False
    ).returncode


def _fetch() -> None:
    """Unpack the packages into `.venv`: nothing is installed on the machine, and root is not needed."""
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        raise SystemExit("mosquitto is not installed, and there is no apt-get to fetch it with.")
    FETCHED.mkdir(parents=True, exist_ok=True)
    lists = FETCHED / "lists"
    (lists / "partial").mkdir(parents=True, exist_ok=True)
    own = ["-o", f"Dir::State::lists={lists}", "-o", f"Dir::Cache={FETCHED}", "-o", "APT::Sandbox::User=root"]
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update"], ["download", *_PACKAGES]):
        subprocess.run(["apt-get", "-qq", *own, *command], check=True, cwd=FETCHED, env=environment)
    for package in FETCHED.glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", str(package), str(FETCHED)], check=True)


if __name__ == "__main__":
    sys.exit(main())
