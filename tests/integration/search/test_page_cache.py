"""Data that will soon be needed is preloaded into memory."""

from __future__ import annotations

import ctypes
import mmap
import os
from typing import TYPE_CHECKING, Final

from infra.local.search_engine.embedded import read_ahead
from tests.helpers.wait import until

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

PAGES: Final = 2_000


def in_memory(file: Path) -> int:
    """Return the number of a file's pages in the page cache."""
    libc = ctypes.CDLL(None, use_errno=True)
    with file.open("r+b") as opened, mmap.mmap(opened.fileno(), 0) as mapped:
        address = ctypes.addressof(ctypes.c_char.from_buffer(mapped))
        residency = (ctypes.c_ubyte * PAGES)()
        assert libc.mincore(ctypes.c_void_p(address), ctypes.c_size_t(len(mapped)), residency) == 0
        return sum(page & 1 for page in residency)


def cold(file: Path) -> Path:
    """Return a file that is only on the disk, if the file system has a disk."""
    with file.open("wb") as opened:
        opened.write(os.urandom(PAGES * mmap.PAGESIZE))
        opened.flush()
        os.fsync(opened.fileno())
        os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return file


def test_folder_is_read_into_the_page_cache(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    files = [cold(tmp_path / "one"), cold(tmp_path / "below" / "other")]
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    read_ahead(tmp_path)
    for file in files:
        until(lambda file=file: in_memory(file) == PAGES)  # type: ignore[misc]


def test_folder_too_large_for_memory_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cold(tmp_path / "one")
    advised: list[int] = []
    monkeypatch.setattr(os, "posix_fadvise", lambda *_: advised.append(1))
    with monkeypatch.context() as patched:
        patched.setattr("infra.local.search_engine.embedded._READ_AHEAD_SHARE", 10**9)
        read_ahead(tmp_path)
        assert advised == []
    read_ahead(tmp_path)
    assert advised == [1]
