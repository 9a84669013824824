"""The installation for the browser tests, fetched once: Playwright, axe-core, and Chromium where it is missing."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

from tests.helpers.suite_packages import SHARE, npm_packages, python_packages

HERE: Final = Path(__file__).parent
TARGET: Final = SHARE / "browser"
PACKAGES: Final = TARGET / "packages"
AXE: Final = TARGET / "node_modules" / "axe-core" / "axe.min.js"
_UNPACKED: Final = TARGET / "chromium"


def fetch() -> None:
    """Fetch what is missing."""
    npm_packages(HERE, TARGET)
    python_packages(HERE / "requirements.lock", PACKAGES)
    if chromium() is None:
        print("Fetching Chromium from Debian; this is needed once and takes a minute.", flush=True)
        _fetch_chromium()


def chromium() -> Path | None:
    """Return the path of Chromium: installed, or unpacked for these tests."""
    installed = shutil.which("chromium") or shutil.which("chromium-browser")
    unpacked = _UNPACKED / "usr" / "lib" / "chromium" / "chromium"
    return Path(installed) if installed else unpacked if unpacked.exists() else None


def environment() -> dict[str, str]:
    """Return the environment in which the tests find their packages, and an unpacked Chromium its libraries."""
    libraries = [str(each) for each in sorted(_UNPACKED.glob("usr/lib/*-linux-gnu"))]
    return os.environ | {"PYTHONPATH": str(PACKAGES), "LD_LIBRARY_PATH": os.pathsep.join(libraries)}


def _fetch_chromium() -> None:
    """Install Chromium, or unpack it and its libraries into `.venv` where the user is not root."""
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        raise SystemExit("Chromium is not installed, and there is no apt-get to fetch it with.")
    variables = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    package = ["--no-install-recommends", "chromium"]
    if os.geteuid() == 0:
        for command in (["update"], ["install", "-y", *package]):
            subprocess.run(["apt-get", "-qq", *command], check=True, env=variables, stdout=subprocess.DEVNULL)
        return
    lists, archives = _UNPACKED / "lists", _UNPACKED / "archives"
    for folder in (lists, archives):
        (folder / "partial").mkdir(parents=True, exist_ok=True)
    own = [
        "-o",
        f"Dir::State::lists={lists}",
        "-o",
        f"Dir::Cache={_UNPACKED}",
        "-o",
        f"Dir::Cache::archives={archives}",
    ]
    own += ["-o", "Debug::NoLocking=1"]
    for command in (["update"], ["install", "-y", "--download-only", *package]):
        subprocess.run(["apt-get", "-qq", *own, *command], check=True, env=variables, stdout=subprocess.DEVNULL)
    for file in archives.glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", str(file), str(_UNPACKED)], check=True)
