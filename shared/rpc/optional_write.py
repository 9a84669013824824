"""Writes that a call can do without."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from shared.platform.runtime import runtime
from shared.platform.telemetry import logger
from shared.rpc.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def lost_if_disk_full(record: str) -> Iterator[None]:
    """Drop a write of a read-only call, such as a count, if it fails in the block and this machine's disk is full."""
    try:
        yield
    except Unavailable as error:
        if not (runtime.is_disk_full and runtime.is_disk_full()):
            raise
        logger.warning("lost", extra={"record": record, "failure": error.message})
