"""The tables of a benchmark, which `python -m tests.suites.bench` prints and writes to README.md.

A module of this package that defines `def tables() -> list[Table]` is a benchmark. It runs in a process of its own and
cleans up after itself. Things that are compared are measured interleaved, in the same run.
"""

from __future__ import annotations

import gc
import random
import statistics
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@dataclass(frozen=True, slots=True)
class BenchTable:
    """Rows under a title; `notes` say what was measured, and what follows from it.

    Without columns nothing was measured, and the notes say why.
    """

    title: str
    columns: list[str]
    rows: list[list[str]]
    notes: list[str] = field(default_factory=list)

    def markdown(self) -> str:
        """Return the table as Markdown."""
        lines = [f"### {self.title}"]
        if self.columns:
            lines += ["", _row(self.columns), _row(["---"] * len(self.columns)), *map(_row, self.rows)]
        lines += ["", *self.notes] if self.notes else []
        return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True)
class Timing:
    """Durations of one operation over many repetitions, in seconds."""

    samples: list[float]

    @property
    def p50(self) -> float:
        """The median."""
        return statistics.median(self.samples)

    @property
    def p95(self) -> float:
        """The 95th percentile."""
        return self._quantile(0.95)

    @property
    def p99(self) -> float:
        """The 99th percentile."""
        return self._quantile(0.99)

    def _quantile(self, share: float) -> float:
        return sorted(self.samples)[min(len(self.samples) - 1, int(len(self.samples) * share))]


def interleaved(contenders: Mapping[str, Callable[[], object]], repetitions: int) -> dict[str, Timing]:
    """Time each contender once a round, in a new order, so that what disturbs the machine disturbs them all."""
    samples: dict[str, list[float]] = {name: [] for name in contenders}
    for run in contenders.values():
        run()
    gc.collect()
    shuffled, order = random.Random(0), list(contenders.items())
    for _ in range(repetitions):
        shuffled.shuffle(order)
        for name, run in order:
            started = time.perf_counter()
            run()
            samples[name].append(time.perf_counter() - started)
    return {name: Timing(each) for name, each in samples.items()}


def ms(seconds: float) -> str:
    """Format a time for tables."""
    return f"{seconds * 1000:.2f} ms"


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"
