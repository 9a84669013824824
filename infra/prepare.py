"""Make `.venv` hold everything that running and testing Kho needs; a second run finds nothing to do.

Only the standard library: it is what a fresh machine has. Packages are installed by uv, itself a wheel that pip
installs first. Where uv fails, pip installs them: pip reads settings that uv does not, such as local folders of wheels.
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
import time
import venv
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
LOCK = ROOT / "requirements.lock"
INSTALLER = ROOT / "infra" / "installer.lock"
STORE = ROOT / "infra" / "local" / "dynoxide"
CONSOLE = ROOT / "infra" / "clients" / "console"
NODE = CONSOLE / "nodejs.lock"
MODEL = ROOT / "infra" / "deploy" / "layers" / "model_builder"
SUPPORTS_STORE = (platform.system(), platform.machine()) == ("Linux", "x86_64")
STAMP = VENV / "kho-prepared"
_SCRIPTS = VENV / ("Scripts" if os.name == "nt" else "bin")
_PYTHON = _SCRIPTS / "python"


class InstallError(Exception):
    """A command that installs something failed; the text is what the command printed."""


def main() -> None:
    """Set up `.venv` from the locks, unless it already is what they say."""
    if not (3, 11) <= sys.version_info[:2] <= (3, 13):
        sys.exit(f"Kho runs on Python 3.11 to 3.13; this is {platform.python_version()}. Set PYTHON=python3.13, say.")
    with _lock():
        if STAMP.is_file() and (CONSOLE / "vendor" / "modules.json").is_file() and STAMP.read_text() == _wanted():
            return
        began = time.monotonic()
        print("Setting up .venv; this is needed once.", flush=True)
        with _step(f"creating a virtual environment with Python {platform.python_version()}"):
            _create_venv()
        with _step("installing uv"), contextlib.suppress(InstallError):  # without it, pip installs everything
            pip_install("--require-hashes", "-r", str(INSTALLER))
        with _step("installing the packages of requirements.lock"):
            install("--require-hashes", "-r", str(LOCK))
        with _step("installing Kho"):
            install("--no-build-isolation", "--no-deps", "-e", str(ROOT))
        with _step("building the embedding model"):
            run([str(_PYTHON), "-m", MODEL.name], folder=MODEL.parent)
        if SUPPORTS_STORE:
            with _step("fetching the local DynamoDB engine"):
                fetch_store(VENV / "share" / "dynoxide", npm())
        with _step("fetching the console's packages"):
            run([str(_PYTHON), str(CONSOLE / "vendor.py"), npm()])
        STAMP.write_text(_wanted())
        print(f"Set up in {time.monotonic() - began:.0f} s.", flush=True)


def install(*arguments: str, python: Path = _PYTHON) -> None:
    """Install packages for `python` with uv, or with pip where uv fails."""
    uv = _SCRIPTS / "uv"
    if uv.is_file():
        try:
            run([str(uv), "pip", "install", "--no-progress", "--python", str(python), *arguments])
        except InstallError:
            print("  uv could not install everything; installing with pip, which takes longer", flush=True)
        else:
            return
    pip_install(*arguments, python=python)


def pip_install(*arguments: str, python: Path = _PYTHON) -> None:
    """Install packages for `python` with pip."""
    target = [] if python == _PYTHON else ["--python", str(python)]
    options = ["--disable-pip-version-check", "--no-input", "--root-user-action=ignore"]
    run([str(_PYTHON), "-I", "-m", "pip", *target, "install", *options, *arguments])


def npm() -> str:
    """Return npm. If this machine has none, install Node.js from PyPI."""
    path = shutil.which("npm", path=_path())
    if path is None:
        install("--require-hashes", "-r", str(NODE))
        path = str(_SCRIPTS / "npm")
    return path


def _wanted() -> str:
    import tomllib  # there since 3.11: after the check of the version

    locks = [LOCK, INSTALLER, STORE / "package-lock.json", CONSOLE / "package-lock.json"]
    files = [*locks, CONSOLE / "vendor.py", *sorted(MODEL.glob("*.py")), Path(__file__)]
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files))
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    # Of the project's settings, those that an installation holds; linters read theirs when they run.
    digest.update(json.dumps([settings["project"]["scripts"], settings["tool"]["hatch"]]).encode())
    return f"{sys.version_info[:2]} {ROOT} {digest.hexdigest()}"


@contextlib.contextmanager
def _lock() -> Iterator[None]:
    """Make a second set-up wait until the first one has ended."""
    try:
        import fcntl
    except ImportError:  # no such locks on Windows; one command at a time there
        yield
        return
    with (ROOT / ".prepare.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def _step(name: str) -> Iterator[None]:
    """Print the step's name. End the program if the step fails, with the installer's own output."""
    print(f"  {name}", flush=True)
    try:
        yield
    except InstallError as error:
        print(error, file=sys.stderr)
        sys.exit(
            f"Setting up .venv failed at: {name}. The lines above are the installer's own. Check that this machine "
            "reaches a package index (pip's settings apply), then run the same command again."
        )


def _create_venv() -> None:
    STAMP.unlink(missing_ok=True)
    try:
        venv.create(VENV, with_pip=True, clear=True, symlinks=os.name != "nt")
    except subprocess.CalledProcessError:
        sys.exit("This Python cannot make virtual environments; on Debian and Ubuntu: apt install python3-venv")


def fetch_store(target: Path, npm: str) -> None:
    """Fetch the DynamoDB engine, which is published on npm alone, and for one platform."""
    target.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(STORE / name, target / name)
    run([npm, "ci", "--no-audit", "--no-fund", "--prefix", str(target)], scripts=Path(npm).parent)


def run(command: list[str], folder: Path | None = None, scripts: Path = _SCRIPTS) -> None:
    """Run a command, which also finds the programs in `scripts`. Raise its output if it fails."""
    environment = os.environ | {"PATH": _path(scripts)}
    done = subprocess.run(  # noqa: S603 - our own words only
        command,
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment,
        cwd=folder,
        encoding="utf-8",
        errors="replace",
    )
    if done.returncode:
        raise InstallError(done.stdout.strip())


def _path(scripts: Path = _SCRIPTS) -> str:
    return f"{scripts}{os.pathsep}{os.environ.get('PATH', '')}"


if __name__ == "__main__":
    main()
