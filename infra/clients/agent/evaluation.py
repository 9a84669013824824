"""Measured quality of search: nDCG@10 and recall of queries whose relevant documents are known."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from infra.clients.agent.backend import BackendError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from pathlib import Path

    from infra.clients.agent.backend import Backend

DEPTH: Final = 10
"""The documents that nDCG and recall count."""
PASSAGES: Final = 50
"""The passages that a query requests. A document counts at its first passage."""


@dataclass(frozen=True, slots=True)
class JudgedQuery:
    """A query and the paths of the documents that answer it."""

    query: str
    relevant: frozenset[str]


@dataclass(frozen=True, slots=True)
class QueryLoss:
    """A query whose relevant documents are not all first: their ranks, or None beyond the passages requested."""

    query: str
    ndcg: float
    ranks: dict[str, int | None]
    first: str
    """The document that came first."""


def ndcg(ranked: Sequence[str], relevant: Collection[str]) -> float:
    """Return nDCG@10 of documents, best first, if all relevant ones are equally so."""
    gain = sum(1 / math.log2(rank + 2) for rank, id_ in enumerate(ranked[:DEPTH]) if id_ in relevant)
    return gain / sum(1 / math.log2(rank + 2) for rank in range(min(DEPTH, len(relevant))))


def read_queries(file: Path) -> list[JudgedQuery]:
    """Read one JSON object per line: `query`, and `relevant`, a list of paths. Raise `BackendError` otherwise."""
    try:
        lines = file.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError):
        raise _invalid(str(file), "cannot be read as UTF-8 text") from None
    queries = [_judged(f"{file}, line {number}", line) for number, line in enumerate(lines, start=1) if line.strip()]
    if not queries:
        raise _invalid(str(file), "has no query")
    return queries


def evaluate(
    backend: Backend, queries: Sequence[JudgedQuery], collections: str, report: Callable[[int, int, str], None]
) -> dict[str, Any]:
    """Run each query and return the means, and the queries that lose, worst first. `report` gets the progress."""
    gains, recalls, losses = [], [], []
    for number, judged in enumerate(queries):
        report(number, len(queries), judged.query)
        ranked = ranked_documents(backend, judged.query, collections)
        gain = ndcg(ranked, judged.relevant)
        gains.append(gain)
        recalls.append(len(judged.relevant.intersection(ranked[:DEPTH])) / len(judged.relevant))
        if gain < 1:
            ranks = {path: ranked.index(path) + 1 if path in ranked else None for path in sorted(judged.relevant)}
            losses.append(QueryLoss(judged.query, round(gain, 4), ranks, ranked[0] if ranked else ""))
    losses.sort(key=lambda loss: loss.ndcg)
    return {
        "queries": len(queries),
        "ndcg_at_10": round(sum(gains) / len(gains), 4),
        "recall_at_10": round(sum(recalls) / len(recalls), 4),
        "losses": [asdict(loss) for loss in losses],
    }


def ranked_documents(backend: Backend, query: str, collections: str) -> list[str]:
    """Return the documents that a query finds, best first."""
    params = {"query": query, "collections": collections, "top_k": PASSAGES}
    results = backend.call("query_knowledge_base", params)["results"]
    return list(dict.fromkeys(each["source_document"] for each in results))


def _judged(place: str, line: str) -> JudgedQuery:
    try:
        record = json.loads(line)
    except ValueError:
        raise _invalid(place, "is not JSON") from None
    query, relevant = (record.get(name) for name in ("query", "relevant")) if isinstance(record, dict) else (None, None)
    if not isinstance(query, str) or not query.strip():
        raise _invalid(place, "has no `query`")
    if not isinstance(relevant, list) or not relevant or not all(isinstance(path, str) for path in relevant):
        raise _invalid(place, "has no `relevant`, a list of the paths that answer the query")
    return JudgedQuery(query, frozenset(relevant))


def _invalid(place: str, problem: str) -> BackendError:
    guidance = 'Each line is a JSON object: {"query": "…", "relevant": ["path of a document", …]}.'
    return BackendError.configuration(f"{place} {problem}.", guidance)
