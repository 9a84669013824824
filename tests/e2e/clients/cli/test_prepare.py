"""`infra/prepare.py` on a machine without a package index."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING

from infra import prepare
from infra.prepare import INSTALLER, LOCK, ROOT, STORE

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


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


def test_pip_installs_what_uv_cannot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    uv = tmp_path / "uv"
    uv.write_text("#!/bin/sh\nexit 1\n")
    uv.chmod(0o755)
    monkeypatch.setattr(prepare, "_SCRIPTS", tmp_path)
    wheel = tmp_path / "tiny-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tiny.py", "")
        archive.writestr("tiny-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1\n")
        archive.writestr("tiny-1.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr("tiny-1.dist-info/RECORD", "")
    prepare.install("--no-index", "--target", str(tmp_path / "packages"), str(wheel))
    assert (tmp_path / "packages" / "tiny.py").is_file()
    assert "installing with pip" in capsys.readouterr().out
