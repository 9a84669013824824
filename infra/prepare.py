"""Make `.venv` hold everything that running and testing Kho needs; a second run finds nothing to do.

Only the standard library: it is what a fresh machine has.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
LOCK = ROOT / "requirements.lock"
STORE = ROOT / "infra" / "local" / "dynoxide"
STAMP = VENV / "kho-prepared"


def main() -> None:
    """Set up `.venv` from the locks, unless it already is what they say."""
    if not (3, 11) <= sys.version_info[:2] <= (3, 13):
        sys.exit(f"Kho runs on Python 3.11 to 3.13; this is {platform.python_version()}. Set PYTHON=python3.13, say.")
    with _alone():
        if STAMP.is_file() and STAMP.read_text() == _wanted():
            return
        print("Setting up .venv; this is needed once and takes a minute or two.", flush=True)
        _create_venv()
        _pip("--require-hashes", "-r", str(LOCK))
        _pip("--no-build-isolation", "--no-deps", "-e", str(ROOT))
        _fetch_store()
        STAMP.write_text(_wanted())


def _wanted() -> str:
    import tomllib  # there since 3.11: after the check of the version

    files = [LOCK, STORE / "package-lock.json", Path(__file__)]
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files))
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    # Of the project's settings, those that an installation holds; linters read theirs when they run.
    digest.update(json.dumps([settings["project"]["scripts"], settings["tool"]["hatch"]]).encode())
    return f"{sys.version_info[:2]} {ROOT} {digest.hexdigest()}"


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Let two commands started at once set up one after the other."""
    try:
        import fcntl
    except ImportError:  # no such locks on Windows; one command at a time there
        yield
        return
    with (ROOT / ".prepare.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _create_venv() -> None:
    STAMP.unlink(missing_ok=True)
    try:
        venv.create(VENV, with_pip=True, clear=True, symlinks=os.name != "nt")
    except subprocess.CalledProcessError:
        sys.exit("This Python cannot make virtual environments; on Debian and Ubuntu: apt install python3-venv")


def _python() -> Path:
    return VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def _pip(*arguments: str) -> None:
    command = [str(_python()), "-I", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *arguments]
    if subprocess.run(command, check=False, stdin=subprocess.DEVNULL).returncode:  # noqa: S603 - our own words only
        sys.exit("Setting up .venv failed; the lines above say why. Run the same command again to go on.")


def _fetch_store() -> None:
    """Fetch the DynamoDB engine, which npm alone has, and has for one platform alone."""
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        return
    target = VENV / "share" / "dynoxide"
    target.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(STORE / name, target / name)
    npm = shutil.which("npm")
    if npm is None:
        _pip("--require-hashes", "-r", str(STORE / "nodejs.lock"))
        npm = str(VENV / "bin" / "npm")
    command = [npm, "ci", "--silent", "--no-audit", "--no-fund", "--prefix", str(target)]
    environment = os.environ | {"PATH": f"{VENV / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"}
    done = subprocess.run(command, check=False, env=environment, stdin=subprocess.DEVNULL)  # noqa: S603 - as above
    if done.returncode:
        sys.exit("npm could not install the local DynamoDB engine; the lines above say why.")


if __name__ == "__main__":
    main()
