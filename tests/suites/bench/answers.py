"""Answers from documents: how well relevant passages are separated from others, and how long answers take."""

from __future__ import annotations

import json
import random
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from infra.local.search_engine.embedded import EmbeddedVectorStore
from shared.answering.relevance import filter_relevant
from shared.search.embedding.e5 import E5
from shared.search.hybrid_search import HybridSearch
from shared.search.index import PassageIndex
from shared.search.passages import DocumentRef, Passage, SearchQuestion
from tests.helpers.kho_server import KhoServer
from tests.helpers.model_server import model_server, reply_with
from tests.suites.bench.datasets import ENCYCLOPAEDIA, data_sets, not_measured_table
from tests.suites.bench.size import sized
from tests.suites.bench.tables import BenchTable, ms

if TYPE_CHECKING:
    from tests.helpers.model_server import ModelRequestHandler
    from tests.suites.bench.datasets import DataSet

TENANT: Final = "bench"
ASKED: Final = sized(4, full=150)
TOP_K: Final = 5
ARTICLE: Final = 5
"""The number of consecutive paragraphs of one article."""
CALLS: Final = sized(2, full=100)
DOCUMENTS: Final = sized(3, full=50)
MODEL_SECONDS: Final = 5.0


def tables() -> list[BenchTable]:
    """Measure the relevance floor and the time budgets."""
    sets = data_sets(ENCYCLOPAEDIA)
    return [_floor(sets) if sets else not_measured_table("Relevance"), _budgets()]


def _floor(sets: list[DataSet]) -> BenchTable:
    embedder = E5()
    rows = []
    with tempfile.TemporaryDirectory(prefix="kho-bench-") as folder:
        store = EmbeddedVectorStore(E5.space, folder)
        closely, roughly = (
            PassageIndex(embedder, store, HybridSearch(embedder, store, parts=parts)) for parts in (True, False)
        )
        for each in {each.collection: each for each in sets}.values():
            for id_, text in each.corpus.items():
                document = DocumentRef(TENANT, _half(each, id_), id_)
                closely.replace(document, 1, [Passage(document, 0, text, 1)])
        for each in sets:
            counted = [count for index in (closely, roughly) for count in _count(each, index)]
            rows.append([each.name, *map(str, counted)])
        store.close()
    notes = [
        f"{ASKED} questions a line to that half of the articles which answers them: how often the right paragraph is",
        f"among {TOP_K}, and how often it counts as relevant. And to the other half: how often",
        "anything does.",
    ]
    columns = ["", "found", "kept", "wrongly answered", "without a closer look: found", "kept", "wrongly answered"]
    return BenchTable("Relevance", columns, rows, notes)


def _count(each: DataSet, index: PassageIndex) -> tuple[int, int, int]:
    found = kept = wrongly = 0
    for query in random.Random(1).sample(sorted(each.queries), ASKED):
        text, right = each.queries[query], next(iter(each.relevant[query]))
        for collection in (f"{each.collection}-0", f"{each.collection}-1"):
            ranking = index.search(SearchQuestion(text, TENANT, (collection,), TOP_K))
            relevant = {
                hit.passage.document.document_id for hit in filter_relevant(text, ranking.hits, ranking.measure)
            }
            if collection == _half(each, right):
                found += right in {hit.passage.document.document_id for hit in ranking.hits}
                kept += right in relevant
            else:
                wrongly += bool(relevant)
    return found, kept, wrongly


def _half(each: DataSet, id_: str) -> str:
    return f"{each.collection}-{int(id_.removeprefix('p')) // ARTICLE % 2}"


def _budgets() -> BenchTable:
    rows = []
    with tempfile.TemporaryDirectory(prefix="kho-bench-") as folder, model_server() as model:
        settings = {"KHO_MODEL_PROVIDER": "openai", "KHO_MODEL": "m", "KHO_MODEL_URL": f"{model.address}/v1"}

        def slowly(conversation: ModelRequestHandler) -> None:
            if not model.ending.wait(MODEL_SECONDS):
                reply_with("Done [1].")(conversation)

        with KhoServer(Path(folder) / "data", environment=settings, measured=True) as server:
            for number in range(DOCUMENTS):
                content = {"body": f"# Pods\n\nPods of kind {number} restart by themselves."}
                document = {"document_id": f"d{number}", "parent_id": "root", "content": content}
                server.post("/agent-data/create_document", json.dumps(document).encode())
            for behave, said in (
                (reply_with("Done [1]."), "a model that answers at once"),
                (slowly, "one that takes 5 s"),
            ):
                model.behave = behave
                for budget in (100, 200, 1000):
                    calls = CALLS if budget < 1000 else max(1, CALLS // 10)
                    taken = sorted(_taken(server, budget) for _ in range(calls))
                    over = sum(each > budget / 1000 for each in taken)
                    rows.append(
                        [said, str(budget), ms(taken[calls // 2]), ms(taken[int(calls * 0.99)]), f"{over} of {calls}"]
                    )
    columns = ["with", "max_latency_ms", "p50", "p99", "over the budget"]
    return BenchTable(f"Answers through HTTP, one after the other, {DOCUMENTS} documents", columns, rows)


def _taken(server: KhoServer, budget: int) -> float:
    body = json.dumps({"query": "How do pods restart?", "routing": {"max_latency_ms": budget}}).encode()
    started = time.perf_counter()
    response = server.post("/agent-data/query_knowledge", body)
    assert response.status == 200, response.data
    return time.perf_counter() - started
