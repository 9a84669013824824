"""Data sets to measure retrieval with: documents, queries, and the documents that answer each query."""

from __future__ import annotations

import json
import os
import re
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from infra.clients.agent.evaluation import ndcg
from tests.suites.bench.size import sized
from tests.suites.bench.tables import BenchTable

if TYPE_CHECKING:
    from collections.abc import Callable

SETTING: Final = "KHO_BENCH_DATA"
FOLDER: Final = sized(
    Path(__file__).with_name("samples"),
    full=Path(os.environ.get(SETTING) or Path(__file__).parents[4] / "shared" / "retrieval"),
)
ENCYCLOPAEDIA: Final = sized("sample", full="xquad")
"""The data sets whose names begin so hold the same short articles in several languages."""
SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])")


@dataclass(frozen=True, slots=True)
class DataSet:
    """Documents, and queries with the documents that answer them."""

    name: str
    corpus: dict[str, str]
    queries: dict[str, str]
    relevant: dict[str, set[str]]

    @property
    def collection(self) -> str:
        """The same for data sets of the same documents."""
        return f"c{zlib.crc32(''.join(self.corpus.values()).encode())}"

    def gains(self, search: Callable[[str], list[str]]) -> list[float]:
        """Return the nDCG@10 of each query, by a search that returns the documents for a query."""
        return [ndcg(search(query), self.relevant[id_]) for id_, query in self.queries.items()]


def data_sets(family: str = "") -> list[DataSet]:
    """Return the data sets whose names begin with `family`; none if their folder does not exist."""
    return [_read(folder) for folder in sorted(FOLDER.glob(f"{family}*"))] if FOLDER.is_dir() else []


def not_measured_table(title: str) -> BenchTable:
    """Return a table that says that the data sets are missing."""
    return BenchTable(
        title, [], [], [f"Not measured: there are no data sets in `{FOLDER.name}`; {SETTING} names theirs."]
    )


def _read(folder: Path) -> DataSet:
    relevant: dict[str, set[str]] = {}
    for line in (folder / "qrels.tsv").read_text(encoding="utf-8").splitlines():
        query, document, _grade = line.split()
        relevant.setdefault(query, set()).add(document)
    queries = _texts(folder / "queries.jsonl")
    return DataSet(folder.name, _texts(folder / "corpus.jsonl"), queries, relevant)


def _texts(file: Path) -> dict[str, str]:
    # Not splitlines(): a text may hold separators of its own.
    records = [json.loads(line) for line in file.read_text(encoding="utf-8").split("\n") if line]
    return {record["_id"]: record["text"] for record in records}
