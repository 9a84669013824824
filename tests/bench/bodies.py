"""Large bodies of documents: the time until their end is found, and the latency of other callers meanwhile."""

from __future__ import annotations

import random
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.bench.datasets import ENCYCLOPAEDIA, SENTENCE_END, data_sets, not_measured_table
from tests.bench.size import sized
from tests.bench.tables import BenchTable, Timing, ms
from tests.helpers.kho_server import KhoServer

if TYPE_CHECKING:
    from collections.abc import Callable

BODIES: Final = sized({"20 KB": 20_000}, full={"300 KB": 300_000, "2 MiB": 2 * 1024 * 1024})
ROUNDS: Final = sized(2, full=100)
PAUSE_SECONDS: Final = 0.05
LOOK_SECONDS: Final = 0.5
LONGEST_SECONDS: Final = 1800.0
SECTION: Final = 20
"""Sentences below each heading."""
ANSWER: Final = "The store room of the {} opens with the word {}."


def tables() -> list[BenchTable]:
    """Write each body, and call other methods until its last sentence is found."""
    sets = data_sets(ENCYCLOPAEDIA)
    if not sets:
        return [not_measured_table("Large bodies")]
    sentences = [each for one in sets for text in one.corpus.values() for each in SENTENCE_END.split(text) if each]
    rows = []
    with (
        tempfile.TemporaryDirectory(prefix="kho-bench-") as folder,
        KhoServer(Path(folder) / "data", production_limits=True) as server,
    ):
        _create(server, "small", "The small lamp is green.")
        calls: dict[str, Callable[[], object]] = {
            "get_document": lambda: server.call("agent-data/get_document", document_id="small"),
            "add_message": lambda: server.call(
                "memory-server/memory/add_message", conversation_id="other", role="user", content="Is the lamp green?"
            ),
            "query_knowledge": lambda: _found(server, "Which colour is the small lamp?", "small"),
        }
        idle = _sample(calls, threading.Event(), ROUNDS)
        for name, size in BODIES.items():
            ended = threading.Event()
            busy: dict[str, Timing] = {}
            others = threading.Thread(target=lambda end=ended, into=busy: into.update(_sample(calls, end)))
            others.start()
            started = time.perf_counter()
            try:
                word = _create_large(server, sentences, name, size)
                _wait_until_found(server, name, word)
            finally:
                seconds = time.perf_counter() - started
                ended.set()
                others.join()
            rows += [
                [
                    name,
                    f"{seconds:.0f} s",
                    call,
                    *(ms(each) for each in (idle[call].p50, timing.p50, idle[call].p99, timing.p99)),
                    f"{len(timing.samples):,}",
                ]
                for call, timing in busy.items()
            ]
    notes = [
        "A document of the data sets' sentences is created, and its last sentence is asked for twice a second.",
        f"Meanwhile another caller makes each call in turn, {PAUSE_SECONDS * 1000:.0f} ms apart. Idle is without the",
        f"document, {ROUNDS} calls each. Bodies of up to 65,536 characters are found by the next query.",
    ]
    columns = ["body", "found after", "other call", "p50 idle", "p50 meanwhile", "p99 idle", "p99 meanwhile", "calls"]
    return [BenchTable("Large bodies, and other callers meanwhile", columns, rows, notes)]


def _create(server: KhoServer, id_: str, body: str) -> None:
    server.call(
        "agent-data/create_document",
        document_id=id_,
        parent_id="root",
        content={"mime_type": "text/markdown", "body": body},
        metadata={"title": id_, "tags": [id_]},
    )


def _create_large(server: KhoServer, sentences: list[str], name: str, size: int) -> str:
    """Create a document of `size` bytes. Return the word that its last sentence contains."""
    chosen = random.Random(name)
    word = f"{chosen.getrandbits(64):016x}"
    last = f"\n## End\n\n{ANSWER.format(name, word)}\n"
    parts, left = [], size - len(last.encode())
    while left > 0:
        section = f"## {chosen.choice(sentences)[:40]}\n\n{' '.join(chosen.choices(sentences, k=SECTION))}\n\n"
        parts.append(section.encode()[:left].decode(errors="ignore"))
        left -= len(section.encode())
    _create(server, name.replace(" ", "-"), "".join(parts) + last)
    return word


def _found(server: KhoServer, query: str, tag: str) -> str:
    answer = server.call("agent-data/query_knowledge", query=query, filters={"tags": [tag]})
    return " ".join(each["snippet"] for each in answer["context"])


def _wait_until_found(server: KhoServer, name: str, word: str) -> None:
    deadline = time.monotonic() + LONGEST_SECONDS
    while word not in _found(server, ANSWER.format(name, word), name.replace(" ", "-")):
        assert time.monotonic() < deadline, f"{name} was not found within {LONGEST_SECONDS:.0f} s"
        time.sleep(LOOK_SECONDS)


def _sample(calls: dict[str, Callable[[], object]], ended: threading.Event, rounds: int = 0) -> dict[str, Timing]:
    """Time each call in turn, in so many rounds or until the event is set."""
    samples: dict[str, list[float]] = {name: [] for name in calls}
    done = 0
    while not done or (done < rounds if rounds else not ended.is_set()):
        done += 1
        for name, call in calls.items():
            started = time.perf_counter()
            call()
            samples[name].append(time.perf_counter() - started)
            time.sleep(PAUSE_SECONDS)
    return {name: Timing(each) for name, each in samples.items()}
