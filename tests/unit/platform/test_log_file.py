"""A log file that cannot be written fails no call."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from shared.platform.telemetry import logger

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_log_file_that_cannot_be_opened_loses_records_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "kho.log"
    file.mkdir()
    monkeypatch.setenv("KHO_LOG_FILE", str(file))
    logger.warning("first")
    logger.warning("second")
    file.rmdir()
    logger.warning("third")
    assert capsys.readouterr().err == f"{file} cannot be written (Is a directory): log records are lost.\n"
    assert "third" in file.read_text()


if sys.platform == "linux":

    def test_full_disk_loses_records_only(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        """/dev/full refuses every write as a full disk does."""
        monkeypatch.setenv("KHO_LOG_FILE", "/dev/full")
        logger.warning("first")
        logger.warning("second")
        assert (
            capsys.readouterr().err == "/dev/full cannot be written (No space left on device): log records are lost.\n"
        )
