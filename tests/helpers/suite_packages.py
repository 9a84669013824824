"""Packages of suites in `.venv/share`: from npm and from the Python index, each as its lock pins it, fetched once."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from infra.prepare import install, npm

if TYPE_CHECKING:
    from collections.abc import Callable

SHARE: Final = Path(sys.prefix) / "share"
_MANIFESTS: Final = ("package.json", "package-lock.json")


def node() -> str:
    """Return Node.js, which comes with npm."""
    npm()
    path = shutil.which("node", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    assert path, "npm comes with node"
    return path


def npm_packages(source: Path, target: Path, *, scripts: bool = False) -> Path:
    """Return the `node_modules` of a folder with a lock, installed in `target`; its packages' scripts run on demand."""

    def fetch() -> None:
        for name in _MANIFESTS:
            shutil.copy(source / name, target / name)
        options = [] if scripts else ["--ignore-scripts"]
        command = [npm(), "ci", *options, "--no-audit", "--no-fund", "--prefix", str(target)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    _once(target, source / "package-lock.json", fetch)
    return target / "node_modules"


def python_packages(lock: Path, target: Path) -> Path:
    """Return the folder of the packages of a lock with hashes, installed apart from Kho's own."""

    def fetch() -> None:
        install("--target", str(target), "--require-hashes", "--no-deps", "-r", str(lock))

    _once(target, lock, fetch)
    return target


def _once(target: Path, lock: Path, fetch: Callable[[], None]) -> None:
    stamp = target / "installed"
    wanted = hashlib.sha256(lock.read_bytes()).hexdigest()
    target.mkdir(parents=True, exist_ok=True)
    with target.with_name(f"{target.name}.lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)  # two workers may need the same packages
        if stamp.exists() and stamp.read_text() == wanted:
            return
        print(f"Fetching the packages of {lock.parent.name}/{lock.name}; this is needed once.", flush=True)
        shutil.rmtree(target)
        target.mkdir()
        fetch()
        stamp.write_text(wanted)
