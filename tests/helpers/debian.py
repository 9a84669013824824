"""Packages of Debian, unpacked into `.venv`: nothing is installed on the machine, and root is not needed."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def unpack(folder: Path, *packages: str) -> None:
    """Fetch packages and unpack them into a folder."""
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        raise SystemExit(f"{packages[0]} is not installed, and there is no apt-get to fetch it with.")
    lists = folder / "lists"
    (lists / "partial").mkdir(parents=True, exist_ok=True)
    own = ["-o", f"Dir::State::lists={lists}", "-o", f"Dir::Cache={folder}", "-o", "APT::Sandbox::User=root"]
    variables = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update"], ["download", *packages]):
        subprocess.run(["apt-get", "-qq", *own, *command], check=True, cwd=folder, env=variables)
    for package in folder.glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", str(package), str(folder)], check=True)
