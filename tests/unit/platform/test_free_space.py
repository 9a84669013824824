"""A reserve of disk space, with which stores open on a full disk."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from infra.local.free_space import reserve_released

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

RESERVE_BYTES = 4 << 20


def test_reserve_is_released_only_while_a_store_opens_on_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reserve = tmp_path / "reserve"
    with reserve_released(tmp_path):
        assert not reserve.exists()
    assert reserve.stat().st_size == RESERVE_BYTES
    with reserve_released(tmp_path):
        assert reserve.stat().st_size == RESERVE_BYTES
    usage = shutil.disk_usage(tmp_path)._replace(free=0)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with reserve_released(tmp_path):
        assert not reserve.exists()
    assert reserve.stat().st_size == RESERVE_BYTES


def test_missing_rest_of_the_reserve_is_allocated(tmp_path: Path) -> None:
    reserve = tmp_path / "reserve"
    reserve.write_bytes(bytes(1000))
    with reserve_released(tmp_path):
        assert reserve.stat().st_size == 1000
    assert reserve.stat().st_size == RESERVE_BYTES
