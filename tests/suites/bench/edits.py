"""Edits and searches by title: what an append to a small and a large document costs, and a search among many."""

from __future__ import annotations

import itertools
import logging
import random
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from shared.aws import dynamodb
from shared.aws.attribute_values import marshal
from shared.aws.dynamodb import to_item
from shared.documents import keys
from shared.documents.names import word_items
from shared.documents.unit_of_work import DocumentHead
from shared.platform.background import map_concurrently
from shared.platform.config import config
from shared.platform.telemetry import logger
from shared.rpc.strict_json import compact
from tests.helpers.document_agent import DocumentAgent, stored_items
from tests.helpers.dynamodb import running_store
from tests.suites.bench import tables as bench
from tests.suites.bench.consumed_capacity import consumed_capacity
from tests.suites.bench.size import sized

if TYPE_CHECKING:
    from collections.abc import Callable

    from shared.aws.dynamodb import Item

ROUNDS: Final = sized(2, full=20)
DOCUMENTS: Final = sized(50, full=100_000)
LARGE: Final = sized(12_000, full=1_990_000)
INDEXED: Final = sized(5, full=200)
_BATCH, _WRITERS = 25, 16
WORDS: Final = ("garden", "guide", "soil", "fern", "moss", "report", "plan", "note", "list", "water")


def tables() -> list[bench.BenchTable]:
    """Measure the functions of agent-data on a store of their own."""
    level = logger.log_level
    logger.setLevel(logging.ERROR)
    try:
        with running_store():
            dynamodb.override_client(None)
            return [_appends(), _searches(DocumentAgent("bench-find")), _filters(DocumentAgent("bench-filter"))]
    finally:
        dynamodb.override_client(None)
        logger.setLevel(level)


def _appends() -> bench.BenchTable:
    agents = {size: DocumentAgent(f"bench-edits-{size}") for size in (10 * 1024, LARGE)}
    chance = random.Random(1)
    for size, agent in agents.items():
        lines = (f"{' '.join(chance.sample(WORDS, 5))} {chance.random()}\n" for _ in range(size // 50))
        agent.create("a", body="".join(lines))
    new = itertools.count()

    def append(size: int) -> Callable[[], Any]:
        return lambda: agents[size]("edit_document", document_id="a", edits=[{"append": f"line {next(new)}\n"}])

    timings = bench.interleaved({str(size): append(size) for size in agents}, ROUNDS)
    rows = []
    for size, agent in agents.items():
        before = _stored_bytes(agent.tenant)
        with consumed_capacity() as units:
            append(size)()
        stored = _stored_bytes(agent.tenant) - before
        timing = timings[str(size)]
        costs = [bench.ms(timing.p50), bench.ms(timing.p95), f"{units['write']:g}", f"{units['read']:g}", f"{stored:,}"]
        rows.append([f"{size:,}", *costs])
    return bench.BenchTable(
        "An append, by the size of the document",
        ["bytes", "p50", "p95", "write units", "read units", "bytes stored"],
        rows,
        [
            "Each revision stores its whole text, compressed. Up to 64 KiB, an append waits until the passages are",
            "embedded.",
        ],
    )


def _stored_bytes(tenant: str) -> int:
    return sum(_size(item) for items in stored_items(tenant).values() for item in items.values())


def _size(item: Item) -> int:
    return sum(len(name) + len(value if isinstance(value, bytes) else str(value)) for name, value in item.items())


def _searches(agent: DocumentAgent) -> bench.BenchTable:
    _fill(agent.tenant)
    common, rare = WORDS[5], f"{DOCUMENTS // 2:06d}"
    searches: dict[str, dict[str, Any]] = {
        "a rare word": {"query": rare},
        "a rare word and a common one": {"query": f"{common} {rare}"},
        "one letter": {"query": "g"},
        "a common word": {"query": common},
        "two common words": {"query": f"{common} gard"},
        "a common word, of one source": {"query": common, "metadata": {"source": "cursor"}},
    }
    calls = {name: partial(agent, "find_documents", limit=10, **params) for name, params in searches.items()}
    timings = bench.interleaved(calls, ROUNDS)
    rows = []
    for name, call in calls.items():
        with consumed_capacity() as units:
            results = len(call()["documents"])
        costs = [bench.ms(timings[name].p50), bench.ms(timings[name].p95), f"{units['calls']:g}", f"{units['read']:g}"]
        rows.append([name, str(results), *costs])
    return bench.BenchTable(
        f"find_documents among {DOCUMENTS:,}",
        ["query", "results", "p50", "p95", "calls to the store", "read units"],
        rows,
        ["Pages of 10. Each title has three of ten words and a number. One in ten documents is of the source."],
    )


def _fill(tenant: str) -> None:
    """Write the heads and the words of many documents, as create_document does."""
    chance = random.Random(1)
    items: list[Item] = []
    for number in range(DOCUMENTS):
        metadata = {"title": f"{' '.join(chance.sample(WORDS, 3))} {number:06d}"}
        metadata |= {"source": "cursor"} if number % 10 == 0 else {}
        head = DocumentHead(f"d{number:06d}", "root", 1, 1, "text/plain", compact(metadata), True, 0, 0)
        items.append({"pk": keys.document(tenant, head.document_id), "sk": keys.DOCUMENT} | to_item(head))
        items += word_items(tenant, head).values()
    batches = [items[start : start + _BATCH] for start in range(0, len(items), _BATCH)]
    deque(map_concurrently(_put, batches, _WRITERS), maxlen=0)


def _put(items: list[Item]) -> None:
    requests: Any = [{"PutRequest": {"Item": marshal(item)}} for item in items]
    dynamodb.client().batch_write_item(RequestItems={config().documents_table: requests})


def _filters(agent: DocumentAgent) -> bench.BenchTable:
    for number in range(INDEXED):
        metadata = {"source": "cursor" if number % 10 == 0 else "codex", "n": number}
        agent.create(f"d{number}", body=f"Fern number {number} is watered at dawn.", metadata=metadata)
    filters = {
        "without a filter": {},
        "of one document in ten": {"source": "cursor"},
        "of one document": {"n": INDEXED // 2},
    }
    ask = partial(agent, "query_knowledge", query="When is a fern watered?")
    calls: dict[str, Callable[[], Any]] = {
        name: partial(ask, filters={"metadata": metadata}) for name, metadata in filters.items()
    }
    timings = bench.interleaved(calls, ROUNDS)
    rows = [
        [name, str(len(call()["context"])), bench.ms(timings[name].p50), bench.ms(timings[name].p95)]
        for name, call in calls.items()
    ]
    return bench.BenchTable(
        f"query_knowledge with filters.metadata, {INDEXED:,} documents",
        ["query", "sources", "p50", "p95"],
        rows,
        ["The embedded engine, without a model that writes."],
    )
