"""Child processes import Kho's modules, wherever they start."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from shared.platform.python_process import module_command

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("isolated", [False, True])
def test_modules_of_the_working_folder_are_not_imported(tmp_path: Path, *, isolated: bool) -> None:
    for name in ("shared", "infra", "runpy", "cyclopts"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('imported from the working folder')")
    command = [*module_command("infra.clients.cli.main", isolated=isolated), "--version"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    process = subprocess.run(command, check=True, capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert process.stdout.strip()
