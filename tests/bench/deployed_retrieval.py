"""Retrieval as deployed, compared with one machine: through the embedding function and Qdrant's REST protocol."""

from __future__ import annotations

import os
import tempfile
from dataclasses import replace
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

from infra.local.template import load
from tests.bench.datasets import data_sets, not_measured_table
from tests.bench.size import sized
from tests.bench.tables import BenchTable
from tests.helpers.kho_server import KhoServer
from tests.helpers.qdrant_server import running_qdrant
from tests.helpers.wait import until

if TYPE_CHECKING:
    from tests.bench.datasets import DataSet

QUERIES: Final = sized(2, full=int(os.environ.get("KHO_BENCH_QUERIES", "20")))
DOCUMENTS: Final = sized(5, full=int(os.environ.get("KHO_BENCH_DOCUMENTS", "20")))
"""The documents of each data set, besides those that answer its queries. The double compares every point in Python."""
SETTINGS: Final = ("KHO_EMBEDDER", "KHO_EMBEDDING_CALLS", "KHO_RERANKER")
"""The settings of search that the template has by default."""
BATCH: Final = 10


def tables() -> list[BenchTable]:
    """Measure the same documents and queries on both."""
    sets = [_part(each) for each in data_sets()]
    if not sets:
        return [not_measured_table("As deployed")]
    deployed = {name: load().environment[name] for name in SETTINGS}
    rows = []
    for each in sets:
        # A double for each data set: it reads all its points for each query.
        with running_qdrant() as qdrant:
            one, other = (_measured(each, settings) for settings in ({}, deployed | {"KHO_QDRANT_URL": qdrant.url}))
        counts = str(len(each.corpus)), str(len(each.queries))
        rows.append([each.name, *counts, f"{one:.3f}", f"{other:.3f}", f"{other - one:+.3f}"])
    notes = [
        f"Of each data set {QUERIES} queries, the documents that answer them, and {DOCUMENTS} others. As deployed:",
        "the template's default settings, the embedding function's JSON and Qdrant's REST protocol, which a double",
        "answers with qdrant-client's local mode. The promise: a difference of .005 at most.",
    ]
    return [
        BenchTable(
            "nDCG@10 as deployed", ["", "documents", "queries", "one machine", "as deployed", "difference"], rows, notes
        )
    ]


def _part(each: DataSet) -> DataSet:
    queries = dict(islice(each.queries.items(), QUERIES))
    needed = {id_ for query in queries for id_ in each.relevant[query]}
    others = islice((id_ for id_ in each.corpus if id_ not in needed), DOCUMENTS)
    kept = needed.union(others)
    corpus = {id_: text for id_, text in each.corpus.items() if id_ in kept}
    return replace(each, corpus=corpus, queries=queries)


def _measured(each: DataSet, settings: dict[str, str]) -> float:
    with (
        tempfile.TemporaryDirectory(prefix="kho-bench-") as folder,
        KhoServer(Path(folder) / "data", environment=settings) as server,
    ):
        server.call("research-agent/manage_collections", action="create", collection_name=each.name)
        documents = [{"path": id_, "content": text} for id_, text in each.corpus.items()]
        for start in range(0, len(documents), BATCH):
            _ingest(server, each.name, documents[start : start + BATCH])

        def search(query: str) -> list[str]:
            found: Any = server.call("research-agent/query_knowledge_base", query=query, collections=each.name)
            return list(dict.fromkeys(hit["source_document"] for hit in found["results"]))

        return fmean(each.gains(search))


def _ingest(server: KhoServer, collection: str, documents: list[dict[str, str]]) -> None:
    done: Any = server.call("research-agent/ingest_documents", collection=collection, documents=documents)
    if done["status"] == "accepted":
        until(lambda: server.call("research-agent/get_ingestion", job_id=done["job_id"])["status"] == "done")
