"""Processor time and memory of running processes."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

_TICKS: Final = os.sysconf("SC_CLK_TCK")


def tree(pid: int) -> list[int]:
    """Return a process and all that descend from it."""
    pids = [pid]
    for each in pids:
        with suppress(OSError):  # a process that has ended
            for children in Path(f"/proc/{each}/task").glob("*/children"):
                pids += map(int, children.read_text().split())
    return pids


def command_of(pid: int) -> str:
    """Return the command line of a process, empty if it has ended."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    return ""


def processor_seconds(pids: Iterable[int]) -> float:
    """Return the processor time that these processes have used, with that of their children that have ended."""
    ticks = 0
    for pid in pids:
        with suppress(OSError):
            ticks += sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:15]))
    return ticks / _TICKS


def memory_bytes(pids: Iterable[int]) -> int:
    """Return the memory of these processes; pages that several share are counted once, in parts."""
    total = 0
    for pid in pids:
        with suppress(OSError):
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            total += next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024
    return total
