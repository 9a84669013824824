"""The data folder belongs to its user alone, and is created only by commands that write."""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from infra.local.data_folder import DataFolderError, DataFolderMissing, lock_folder, server_or_lock

if TYPE_CHECKING:
    from pathlib import Path


def rights(path: Path) -> str:
    return oct(path.stat().st_mode & 0o777)


def test_existing_folder_and_its_files_become_private(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    (folder / "passages").mkdir(parents=True)
    for name in ("dynamodb.sqlite", "passages/segment"):
        (folder / name).write_text("x")
        (folder / name).chmod(0o644)
    folder.chmod(0o755)
    with lock_folder(folder):
        (folder / "new").write_text("x")
        os.mkdir(folder / "new-folder")  # noqa: PTH102 - as other libraries do
    private = {path: rights(path) for path in [folder, *folder.rglob("*")]}
    assert set(private.values()) == {"0o700", "0o600"}, private


def test_empty_folder_becomes_private(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    with lock_folder(tmp_path):
        assert rights(tmp_path) == "0o700"


def test_folder_of_other_files_is_refused_and_unchanged(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("x")
    tmp_path.chmod(0o755)
    with pytest.raises(DataFolderError, match="has other files"), lock_folder(tmp_path):
        pass
    assert rights(tmp_path) == "0o755"
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.txt"]


def test_file_mode_is_restored(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        with lock_folder(tmp_path):
            pass
        assert os.umask(0o022) == 0o022
    finally:
        os.umask(before)


def test_missing_folder_is_not_created_by_readers(tmp_path: Path) -> None:
    folder = tmp_path / "mistyped"
    with ExitStack() as stack, pytest.raises(DataFolderMissing, match=f"there is no data folder {folder}"):
        server_or_lock(folder, stack, create=False)
    assert not folder.exists()
