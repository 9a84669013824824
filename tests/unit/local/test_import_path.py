"""No process of ours imports code from its working directory or from paths in its environment."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from infra import prepare
from infra.local import dynamodb
from shared.knowledge.pdf import text_of
from tests.helpers.pdf import make_pdf, text_stream

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def read_a_pdf() -> None:
    assert text_of(make_pdf(text_stream(b"harmless"))).strip() == "harmless"


def start_the_store() -> None:
    subprocess.run([*dynamodb._moto("127.0.0.1", 0), "--help"], check=True)


def install_packages() -> None:
    prepare.pip_install("--help")


@pytest.mark.parametrize("start", [read_a_pdf, start_the_store, install_packages])
def test_modules_in_the_working_directory_are_not_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start: Callable[[], None]
) -> None:
    ran = tmp_path / "ran"
    for name in ("infra", "moto", "pip", "pypdf", "sitecustomize", "usercustomize", "io"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"open({str(ran)!r}, 'w').close()\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", f":{tmp_path}")
    start()
    assert not ran.exists()
