"""AWS SAM's command line and the emulator, each in an environment of its own: they pin what Kho has otherwise."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from infra.prepare import install
from tests.suites.rie.installation import functions_python

HERE: Final = Path(__file__).parent
TARGET: Final = Path(sys.prefix) / "share" / "deployment"


def tool(name: str) -> Path:
    """Install the tool if necessary. Return the folder of its commands."""
    lock, folder = HERE / f"{name}.lock", TARGET / name
    python = python313()
    wanted = f"{python} {hashlib.sha256(lock.read_bytes()).hexdigest()}"
    stamp = folder / "installed"
    if not stamp.exists() or stamp.read_text() != wanted:
        print(f"Fetching {name}; this is needed once and takes a minute.", flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([python, "-m", "venv", "--without-pip", str(folder)], check=True)
        install("--require-hashes", "-r", str(lock), python=folder / "bin" / "python")
        stamp.write_text(wanted)
    return folder / "bin"


def python313() -> str:
    """Return the functions' own Python: building and the emulator accept only that one."""
    python = functions_python()
    if python is None:
        sys.exit("Building takes Python 3.13, as 'python3.13' on the path.")
    return str(python)


def command_environment(**more: str) -> dict[str, str]:
    """Return an environment with Python 3.13, without an account, and with loopback outside any proxy."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "PYTHONPATH"))}
    nowhere = {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "NO_PROXY": "127.0.0.1,localhost",
        "no_proxy": "127.0.0.1,localhost",
        "SAM_CLI_TELEMETRY": "0",
    }
    path = f"{Path(python313()).parent}{os.pathsep}{os.environ['PATH']}"
    return variables | nowhere | {"PATH": path} | more
