"""The installation for running functions as Lambda does, fetched once: emulator, runtime and layers.

The layers are those that are deployed, for this machine's Python and processor. Each function finds its own alone, so
what a layer lacks is missed here as it would be there.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from infra.clients.console.bundle import bundle
from infra.local.template import FILE
from infra.prepare import MODEL, install

ROOT: Final = FILE.parent
LAYERS: Final = ROOT / "infra" / "deploy" / "layers"
HERE: Final = Path(__file__).parent
TARGET: Final = Path(sys.prefix) / "share" / "rie"
_BLOCK: Final = re.compile(r"^(?=[a-z0-9])", re.MULTILINE)
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]*")


@dataclass(frozen=True, slots=True)
class Installed:
    """The installed paths."""

    python: Path
    emulator: Path
    task: Path
    """The functions' code, without bytecode, as it is deployed."""

    def layer(self, name: str) -> Path:
        """Return a layer's packages, by its logical name in the template."""
        return TARGET / "layers" / name


def installed() -> Installed:
    """Install everything that is missing, and Kho's current code."""
    if platform.system() != "Linux":
        sys.exit("The runtime interface emulator runs on Linux alone.")
    base = functions_python() or Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}"
    _fetch(base)
    _copy(ROOT / "functions", TARGET / "task")
    _copy(ROOT / "shared", TARGET / "layers" / "SharedLayer" / "shared")
    _compile(TARGET / "layers" / "SharedLayer")
    bundle(TARGET / "layers" / "ConsoleLayer" / "console", one_machine=False)
    machine = {"x86_64": "x86_64", "aarch64": "arm64"}[platform.machine()]
    emulator = TARGET / "emulator" / "samcli" / "local" / "rapid" / f"aws-lambda-rie-{machine}"
    return Installed(_venv_python(), emulator, TARGET / "task")


def peers() -> Path:
    """Install the peers' packages, for benchmarks only."""
    target = TARGET / "peers"
    if not target.exists():
        _install(_venv_python(), "--no-deps", "--target", str(target), "-r", str(HERE / "peers.lock"))
    return target


def version(python: Path) -> str:
    """Return a Python's version, or an empty string if it does not run."""
    command = [str(python), "-c", "import platform; print(platform.python_version())"]
    return subprocess.run(command, check=False, capture_output=True, text=True).stdout.strip()


def functions_python() -> Path | None:
    """Return Python 3.13, the functions' version, if this machine has it."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    candidates = [shutil.which("python3.13"), *sorted(pyenv.glob("versions/3.13.*/bin/python3.13"), reverse=True)]
    return next((Path(each) for each in candidates if each and version(Path(each))), None)


def _fetch(base: Path) -> None:
    locks = [HERE / "emulator.lock", HERE / "runtime.lock", HERE / "peers.lock", *sorted(LAYERS.glob("*.lock"))]
    sources = [*locks, ROOT / "requirements.lock", *sorted(MODEL.glob("*.py")), Path(__file__)]
    content = b"".join(file.read_bytes() for file in sources)
    wanted = f"{base} {version(base)} {hashlib.sha256(content).hexdigest()}"
    stamp = TARGET / "installed"
    if stamp.exists() and stamp.read_text() == wanted:
        return
    print("Fetching the emulator, the runtime and the layers; this is needed once and takes a minute.", flush=True)
    shutil.rmtree(TARGET, ignore_errors=True)
    subprocess.run([str(base), "-m", "venv", "--without-pip", "--clear", str(TARGET / "python")], check=True)
    _install(base, "--no-deps", "--target", str(TARGET / "emulator"), "-r", str(HERE / "emulator.lock"))
    _install(_venv_python(), "-r", str(HERE / "runtime.lock"))
    for lock in sorted(LAYERS.glob("*.lock")):
        layer = TARGET / "layers" / f"{lock.stem.capitalize()}Layer"
        layer.mkdir(parents=True)
        pinned = layer.with_suffix(".txt")
        pinned.write_text(_for_this_python(lock))
        _install(base, "--no-deps", "--target", str(layer), "-r", str(pinned))
        _compile(layer)
    _compile(TARGET / "python")
    model = TARGET / "layers" / "EmbeddingLayer"
    subprocess.run([sys.executable, "-m", MODEL.name, str(model)], check=True, cwd=MODEL.parent)
    stamp.write_text(wanted)


def _for_this_python(lock: Path) -> str:
    """Install a layer's packages in the tested versions; on the functions' own Python, they are the layer's."""
    wanted = set(re.findall(r"^([a-z0-9][a-z0-9._-]*)==", lock.read_text(encoding="utf-8"), re.MULTILINE))
    blocks = _BLOCK.split((ROOT / "requirements.lock").read_text(encoding="utf-8"))
    return "".join(block for block in blocks if (found := _NAME.match(block)) and found[0] in wanted)


def _install(python: Path, *arguments: str) -> None:
    install("--only-binary=:all:", "--require-hashes", *arguments, python=python)


def _compile(folder: Path) -> None:
    """Write the bytecode that a layer is deployed with: uv writes none."""
    subprocess.run([str(_venv_python()), "-m", "compileall", "-q", str(folder)], check=True)


def _copy(source: Path, target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "Makefile"))


def _venv_python() -> Path:
    return TARGET / "python" / "bin" / "python"
