"""`infra/prepare.py` on a machine without a package index."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

from infra.prepare import INSTALLER, LOCK, ROOT, STORE

if TYPE_CHECKING:
    from pathlib import Path


def test_failed_step_prints_installer_error_and_advice(tmp_path: Path) -> None:
    read = [ROOT / "infra" / "prepare.py", ROOT / "pyproject.toml", LOCK, INSTALLER, STORE / "package-lock.json"]
    for source in read:
        target = tmp_path / source.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
    without_index = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_"))}
    without_index |= {"PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull, "UV_OFFLINE": "1"}
    command = [sys.executable, str(tmp_path / "infra" / "prepare.py")]
    process = subprocess.run(command, check=False, capture_output=True, text=True, env=without_index)
    assert process.returncode == 1
    assert process.stdout.splitlines()[-1] == "  installing the packages of requirements.lock"
    assert "No matching distribution found" in process.stderr
    assert process.stderr.splitlines()[-1].startswith("Setting up .venv failed at: installing the packages")
    assert process.stderr.rstrip().endswith("then run the same command again.")
    assert not (tmp_path / ".venv" / "kho-prepared").exists()
