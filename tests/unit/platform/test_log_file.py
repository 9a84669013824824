"""A log file that cannot be written fails no call, and loses no line when it is rotated."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from shared.platform.log_file import WORKER, LogFile
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


def test_lines_of_many_threads_are_whole_and_in_order_across_rotations(tmp_path: Path) -> None:
    file = LogFile(str(tmp_path / "kho.log"), max_bytes=8_000, checked_bytes=1_000)

    def write(thread: int) -> None:
        for number in range(250):
            file.write(f"thread {thread} line {number:04}\n".encode())

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    newest_first = sorted(tmp_path.iterdir())
    assert [each.name for each in newest_first] == ["kho.log", "kho.log.1", "kho.log.2"]
    lines = "".join(each.read_text() for each in reversed(newest_first)).splitlines()
    for thread in range(4):
        assert [line for line in lines if line.startswith(f"thread {thread} ")] == [
            f"thread {thread} line {number:04}" for number in range(250)
        ]


def test_three_former_files_are_kept(tmp_path: Path) -> None:
    file = LogFile(str(tmp_path / "kho.log"), max_bytes=5, checked_bytes=0)
    for number in range(7):
        file.write(f"line {number}\n".encode())
    texts = {each.name: each.read_text() for each in tmp_path.iterdir()}
    assert texts == {f"kho.log{end}": f"line {6 - age}\n" for age, end in enumerate(("", ".1", ".2", ".3"))}


def test_worker_follows_the_rotation_of_another_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "kho.log"
    owner, worker = (LogFile(str(path), max_bytes=30, checked_bytes=0) for _ in range(2))
    monkeypatch.setenv(WORKER, "1")
    for number in range(3):
        worker.write(f"worker line {number}\n".encode())
    assert [each.name for each in tmp_path.iterdir()] == ["kho.log"]
    monkeypatch.delenv(WORKER)
    owner.write(b"owner line\n")
    monkeypatch.setenv(WORKER, "1")
    worker.write(b"worker line 3\n")
    assert path.read_text() == "owner line\nworker line 3\n"
    assert path.with_name("kho.log.1").read_text() == "worker line 0\nworker line 1\nworker line 2\n"
