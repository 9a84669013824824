"""`infra/prepare.py` on a machine without a package index."""

from __future__ import annotations

import shutil
import venv
import zipfile
from importlib.util import module_from_spec, spec_from_file_location
from typing import TYPE_CHECKING

import pytest

from infra import prepare

if TYPE_CHECKING:
    from pathlib import Path


def test_failed_step_prints_installer_error_and_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The environment's pip finds no package. Making a real environment takes 10 s of processor time."""

    def create_environment(folder: Path, **_options: object) -> None:
        python = folder / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.write_text('#!/bin/sh\necho "ERROR: No matching distribution found for boto3"\nexit 1\n')
        python.chmod(0o755)

    (tmp_path / "infra").mkdir()
    spec = spec_from_file_location("prepare_elsewhere", shutil.copy(prepare.__file__, tmp_path / "infra"))
    assert spec
    assert spec.loader
    elsewhere = module_from_spec(spec)
    spec.loader.exec_module(elsewhere)
    monkeypatch.setattr(venv, "create", create_environment)
    with pytest.raises(SystemExit, match=r"^Setting up \.venv failed at: installing the packages") as ended:
        elsewhere.main()
    assert str(ended.value).endswith("then run the same command again.")
    printed = capsys.readouterr()
    assert printed.out.splitlines()[-1] == "  installing the packages of requirements.lock"
    assert "No matching distribution found" in printed.err
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
