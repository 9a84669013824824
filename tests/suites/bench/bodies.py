"""Large bodies of documents: the time until their end is found, and the latency of other callers meanwhile."""

from __future__ import annotations

import itertools
import random
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.helpers.kho_server import KhoServer
from tests.suites.bench.datasets import ENCYCLOPAEDIA, SENTENCE_END, data_sets, not_measured_table
from tests.suites.bench.size import sized
from tests.suites.bench.tables import BenchTable, Timing, ms

if TYPE_CHECKING:
    from collections.abc import Callable

BODIES: Final = sized({"20 KB": 20_000}, full={"300 KB": 300_000, "2 MiB": 2 * 1024 * 1024})
ROUNDS: Final = sized(2, full=50)
PAUSE_SECONDS: Final = 0.05
LOOK_SECONDS: Final = 0.5
LONGEST_SECONDS: Final = 1800.0
SECTION: Final = 20
"""Sentences below each heading."""
ANSWER: Final = "The store room of the {} opens with the word {}."
RATIO: Final = 3
MORE_SECONDS: Final = 0.15
"""A call may take three times as long as on an idle server at p95, or this much longer, whichever is more."""
MOST_SECONDS: Final = {"submit_experience": 1.0}
"""Promises of p95 that hold in any case."""
UNMETERED: Final = {
    f"KHO_ADDRESS_{kind}": "1000000"
    for kind in ("QUERY_BURST", "QUERIES_A_MINUTE", "SUBMISSION_BURST", "SUBMISSIONS_A_MINUTE")
} | {f"KHO_ANONYMOUS_{kind}_A_MINUTE": "0" for kind in ("QUERIES", "SUBMISSIONS")}


def tables() -> list[BenchTable]:
    """Write each body, and call other methods until its last sentence is found."""
    sets = data_sets(ENCYCLOPAEDIA)
    if not sets:
        return [not_measured_table("Large bodies")]
    sentences = [each for one in sets for text in one.corpus.values() for each in SENTENCE_END.split(text) if each]
    with (
        tempfile.TemporaryDirectory(prefix="kho-bench-") as folder,
        KhoServer(Path(folder) / "data", production_limits=True, environment=UNMETERED) as server,
    ):
        calls = _Callers(server, sentences).calls()
        for call in calls.values():
            call()
        idle = _sample(calls, threading.Event(), ROUNDS)
        busy = {name: _meanwhile(server, sentences, calls, name, size) for name, size in BODIES.items()}
        after = _sample(calls, threading.Event(), ROUNDS)
    quiet = {name: Timing(idle[name].samples + after[name].samples) for name in calls}
    rows = [
        _row(body, seconds, call, quiet[call], timing)
        for body, (seconds, timings) in busy.items()
        for call, timing in timings.items()
    ]
    notes = [
        "A document of the data sets' sentences is created, and its last sentence is asked for twice a second.",
        f"Meanwhile another caller makes each call in turn, {PAUSE_SECONDS * 1000:.0f} ms apart. Idle is without the",
        f"documents, {ROUNDS} calls each before and after them. `create_document` creates 1 KB; such a body, as all of",
        "up to 65,536 characters, is found by the next query. The limit of the p95 meanwhile is three times the idle",
        f"one or {MORE_SECONDS * 1000:.0f} ms more, whichever is more, and 1 s for submissions.",
    ]
    columns = "body, found after, other call, p50 idle, p50 meanwhile, p95 idle, p95 meanwhile, ratio, limit, calls"
    return [BenchTable("Large bodies, and other callers meanwhile", columns.split(", "), rows, notes)]


def _row(body: str, seconds: float, call: str, idle: Timing, timing: Timing) -> list[str]:
    limit = min(max(RATIO * idle.p95, idle.p95 + MORE_SECONDS), MOST_SECONDS.get(call, float("inf")))
    times = [ms(each) for each in (idle.p50, timing.p50, idle.p95, timing.p95)]
    kept = ms(limit) if timing.p95 <= limit else f"{ms(limit)}: exceeded"
    return [body, f"{seconds:.0f} s", call, *times, f"{timing.p95 / idle.p95:.1f}", kept, f"{len(timing.samples):,}"]


class _Callers:
    """The calls of others: each stores or asks for something else every time."""

    def __init__(self, server: KhoServer, sentences: list[str]) -> None:
        self.server, self.sentences = server, sentences
        self.chosen, self.numbers = random.Random(2), itertools.count(1)
        _create(server, "small", "The small lamp is green.")

    def calls(self) -> dict[str, Callable[[], object]]:
        """Return the calls by name."""
        return {
            "submit_experience": self._submit,
            "query_experiences": lambda: self._call("recall-kit/query_experiences", keywords=self._text(60)),
            "create_document": self._create,
            "query_knowledge": lambda: _found(self.server, self._text(60), "small"),
            "add_message": lambda: self._call(
                "memory-server/memory/add_message", conversation_id="other", role="user", content=self._text(200)
            ),
        }

    def _call(self, method: str, /, **params: Any) -> object:
        return self.server.call(method, **params)

    def _text(self, characters: int) -> str:
        text = ""
        while len(text) < characters:
            text += f"{self.chosen.choice(self.sentences)} "
        return text[:characters]

    def _submit(self) -> object:
        return self._call(
            "recall-kit/submit_experience",
            title=f"{next(self.numbers)}: {self._text(60)}",
            problem_description=self._text(300),
            solution=self._text(300),
        )

    def _create(self) -> object:
        return _create(self.server, f"other-{next(self.numbers)}", self._text(1000))


def _meanwhile(
    server: KhoServer, sentences: list[str], calls: dict[str, Callable[[], object]], name: str, size: int
) -> tuple[float, dict[str, Timing]]:
    """Create a document. Return the seconds until its end is found, and the durations of the calls meanwhile."""
    ended = threading.Event()
    busy: dict[str, Timing] = {}
    others = threading.Thread(target=lambda: busy.update(_sample(calls, ended)))
    others.start()
    started = time.perf_counter()
    try:
        word = _create_large(server, sentences, name, size)
        _wait_until_found(server, name, word)
    finally:
        seconds = time.perf_counter() - started
        ended.set()
        others.join()
    return seconds, busy


def _create(server: KhoServer, id_: str, body: str) -> object:
    return server.call(
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
