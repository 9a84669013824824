"""Documents: what each write and read costs, how a move's cost grows with depth, and how many fit in a second."""

from __future__ import annotations

import itertools
import logging
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

from shared.aws import dynamodb
from shared.documents import tree
from shared.platform.telemetry import logger
from tests.helpers.document_agent import DocumentAgent
from tests.helpers.dynamodb import running_store
from tests.suites.bench import tables as bench
from tests.suites.bench.consumed_capacity import consumed_capacity
from tests.suites.bench.size import sized

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS: Final = sized(2, full=40)
EACH: Final = sized(3, full=60)
SIBLINGS: Final = sized(10, full=100)
SHALLOW, DEEP = sized((2, 4), full=(4, 32))
BODY: Final = "Bước khởi tạo hạ tầng, và những gì cần kiểm tra trước khi bắt đầu. " * sized(1, full=12)


def tables() -> list[bench.BenchTable]:
    """Measure the functions of agent-data on a store of their own."""
    level = logger.log_level
    logger.setLevel(logging.ERROR)
    try:
        with running_store():
            dynamodb.override_client(None)
            return [_costs(DocumentAgent("bench-costs")), _rates(DocumentAgent("bench-rates"))]
    finally:
        dynamodb.override_client(None)
        logger.setLevel(level)


def _costs(agent: DocumentAgent) -> bench.BenchTable:
    for length, name in ((SHALLOW, "shallow"), (DEEP, "deep")):
        for level in range(1, length + 1):
            agent.create(f"{name}-{level}", f"{name}-{level - 1}" if level > 1 else "root")
    for name in ("moved-shallow", "moved-deep", "read", "many"):
        agent.create(name, body=BODY)
    agent.create("sibling", "many")
    for number in range(SIBLINGS - 1):
        agent.create(f"child-{number}", "many", body=BODY)
    parents = {
        "moved-shallow": itertools.cycle([f"shallow-{SHALLOW}", f"shallow-{SHALLOW - 1}"]),
        "moved-deep": itertools.cycle([f"deep-{DEEP}", f"deep-{DEEP - 1}"]),
    }
    new = itertools.count()

    def move_under_unread_ancestors() -> None:
        for level in range(1, DEEP + 1):
            tree._parent_hints.delete((agent.tenant, f"deep-{level}"))
        agent.move("moved-deep", next(parents["moved-deep"]))

    operations: dict[str, Callable[[], Any]] = {
        "create_document, 1 KB": lambda: agent.create(f"new-{next(new)}", body=BODY),
        "create_document, 1 KB, with request_id": lambda: agent.create(
            f"new-{(number := next(new))}", body=BODY, request_id=f"r-{number}"
        ),
        "update_document, 1 KB": lambda: agent(
            "update_document", document_id="read", patch={"content": {"body": BODY}}
        ),
        f"move_document, under {SHALLOW} levels": lambda: agent.move("moved-shallow", next(parents["moved-shallow"])),
        f"move_document, under {DEEP} levels": lambda: agent.move("moved-deep", next(parents["moved-deep"])),
        f"move_document, under {DEEP} levels not read before": move_under_unread_ancestors,
        f"move_document, before a sibling of {SIBLINGS}": lambda: agent.move(
            f"child-{SIBLINGS // 2}", "many", before="child-3"
        ),
        "get_document": lambda: agent.get("read"),
        f"list_children, {SIBLINGS}": lambda: agent("list_children", parent_id="many"),
    }
    timings = bench.interleaved(operations, ROUNDS)
    rows = []
    for name, run in operations.items():
        with consumed_capacity() as units:
            run()
        calls, writes, reads = units["calls"], units["write"], units["read"]
        rows.append(
            [name, bench.ms(timings[name].p50), bench.ms(timings[name].p99), *map(_number, (calls, writes, reads))]
        )
    return bench.BenchTable(
        "What a call costs",
        ["call", "p50", "p99", "calls to the store", "write units", "read units"],
        rows,
        [
            f"{ROUNDS} rounds at the functions, without endpoints. A transaction costs two write units a KB; each",
            "ancestor is checked once: a move grows with depth, not with siblings. Ancestors that the process has seen",
            "are read in one batch; otherwise one by one, because only a document's position names its parent.",
            "A change of a text waits until it is embedded, so that the next question finds it.",
        ],
    )


def _rates(agent: DocumentAgent) -> bench.BenchTable:
    names = [f"d{number}" for number in range(64)]
    for number, name in enumerate(names):
        agent.create(name, "root" if number < 8 else names[number // 4], body=BODY)

    def update(writer: int, turn: int) -> None:
        agent("update_document", document_id=names[writer], patch={"metadata": {"turn": turn}})

    def move(writer: int, turn: int) -> None:
        agent.move(names[32 + writer * 4], names[(turn * 7 + writer) % 16])

    rows = []
    for name, run in (("update_document", update), ("move_document", move)):
        rates = [_per_second(run, writers) for writers in (1, 8)]
        rows.append([name, *(f"{rate:.0f} / s" for rate in rates)])
    return bench.BenchTable(
        "How many in a second",
        ["call", "1 writer", "8 writers"],
        rows,
        ["One process, one embedded store. Each writer updates a document of its own; all move about one tree."],
    )


def _per_second(run: Callable[[int, int], None], writers: int) -> float:
    def work(writer: int) -> None:
        for turn in range(EACH):
            run(writer, turn)

    started = time.perf_counter()
    with ThreadPoolExecutor(writers) as pool:
        list(pool.map(work, range(writers)))
    return writers * EACH / (time.perf_counter() - started)


def _number(units: float) -> str:
    return f"{units:g}"
