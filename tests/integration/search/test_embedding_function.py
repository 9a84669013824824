"""Embedding by calls of the function: the vectors of the model, in bounded and resumable batches."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pytest

from infra.local.functions import Functions
from infra.local.template import load
from shared.platform.background import submit
from shared.platform.config import config
from shared.platform.lanes import bulk_lane
from shared.platform.runtime import runtime
from shared.rpc import invocation
from shared.rpc.errors import TooManyRequests, Unavailable
from shared.search.embedding import embedder, function
from shared.search.embedding.function import BULK_FUNCTION, MAX_TEXTS, URGENT_FUNCTION, FunctionEmbedder
from shared.search.index import PassageIndex
from shared.search.passages import DocumentRef, Passage, SearchQuestion
from tests.helpers.passages import TEXTS
from tests.helpers.wait import CEILING_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from infra.local.search_engine.embedded import EmbeddedVectorStore
    from shared.search.embedding.e5 import E5

CALLS = 3


class Recorder:
    """The transport to the function. It keeps the texts of each call, and can fail or wait for other calls."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self.names: set[str] = set()
        self.failing_text: str | None = None
        self.throttled = 0
        self.together: threading.Barrier | None = None
        self.most_at_once = self._at_once = 0
        self._functions = Functions(load().functions)
        self._changing = threading.Lock()

    def __call__(self, name: str, payload: bytes) -> bytes:
        with self._changing:
            self.names.add(name)
            self.calls.append(json.loads(payload)["texts"])
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
            fails = self.failing_text in self.calls[-1] or self.throttled > 0
            self.throttled -= 1
        try:
            if fails:
                raise TooManyRequests
            if self.together:
                self.together.wait(CEILING_SECONDS)
            return self._functions(name, payload)
        finally:
            with self._changing:
                self._at_once -= 1


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorder]:
    recorder = Recorder()
    monkeypatch.setattr(runtime, "functions", recorder)
    monkeypatch.setenv("KHO_EMBEDDING_CALLS", str(CALLS))
    config.cache_clear()
    function._bulk_calls.cache_clear()
    yield recorder
    monkeypatch.undo()
    config.cache_clear()
    function._bulk_calls.cache_clear()


def passages(tenant: str) -> list[Passage]:
    """Return a long document's passages."""
    document = DocumentRef(tenant, "c", "long")
    return [Passage(document, number, f"Line {number} of a long text.", 1) for number in range(80)]


def test_function_returns_the_vectors_of_the_model(e5: E5, recorder: Recorder) -> None:
    remote = embedder()
    assert isinstance(remote, FunctionEmbedder)
    texts = [*TEXTS, "", "\ud800 lone", "x" * 100_000]
    pairs = [
        *zip(remote.passages(texts), e5.passages(texts), strict=True),
        (remote.question(TEXTS[0]), e5.question(TEXTS[0])),
    ]
    for ours, theirs in pairs:
        assert ours.vector == pytest.approx(theirs.vector, abs=1e-7)
        assert ours.tokens is not None
        assert theirs.tokens is not None
        assert len(ours.tokens) == len(theirs.tokens)
        for one, other in zip(ours.tokens, theirs.tokens, strict=True):
            assert one == pytest.approx(other, abs=1e-3)


def test_function_embeds_and_compares_in_context(e5: E5, recorder: Recorder) -> None:
    texts, before = TEXTS[:3], [[], [TEXTS[4]], [TEXTS[5], TEXTS[0]]]
    pairs = zip(embedder().passages_in_context(texts, before), e5.passages_in_context(texts, before), strict=True)
    for ours, theirs in pairs:
        assert ours.vector == pytest.approx(theirs.vector, abs=1e-7)
    compared = zip(embedder().compare(TEXTS[3], texts, before), e5.compare(TEXTS[3], texts, before), strict=True)
    for ours_compared, theirs_compared in compared:
        assert asdict(ours_compared) == pytest.approx(asdict(theirs_compared), abs=1e-6)


def test_a_call_has_at_most_as_many_texts_as_a_response_can_hold(recorder: Recorder) -> None:
    longest = "tại sao bầu trời xanh " * 300
    embeddings = FunctionEmbedder().passages(["short"] * (MAX_TEXTS + 1))
    assert [len(texts) for texts in recorder.calls] == [MAX_TEXTS, 1]
    assert len(embeddings) == MAX_TEXTS + 1
    request = {"kind": "passages", "texts": [longest], "correlation_id": ""}
    assert MAX_TEXTS * len(recorder(URGENT_FUNCTION, json.dumps(request).encode())) < invocation.MAX_EVENT_BYTES


@pytest.mark.parametrize("failure", [TimeoutError(), invocation.FunctionCrashed(), TooManyRequests()])
def test_function_that_fails_is_unavailable(monkeypatch: pytest.MonkeyPatch, failure: Exception) -> None:
    def fail(*_: Any) -> bytes:
        raise failure

    monkeypatch.setattr(runtime, "functions", fail)
    with pytest.raises(Unavailable):
        FunctionEmbedder().question("why")


@pytest.mark.parametrize("crashes_on_any", [False, True])
def test_crash_is_the_cause_if_only_these_texts_crash_the_function(
    monkeypatch: pytest.MonkeyPatch, recorder: Recorder, crashes_on_any: bool
) -> None:
    def call(name: str, payload: bytes) -> bytes:
        if crashes_on_any or "strange" in json.loads(payload)["texts"]:
            raise invocation.FunctionCrashed(name)
        return recorder(name, payload)

    monkeypatch.setattr(runtime, "functions", call)
    with pytest.raises(Unavailable) as raised:
        FunctionEmbedder().passages(["plain", "strange"])
    assert isinstance(raised.value.__cause__, invocation.FunctionCrashed) is not crashes_on_any


def test_batches_of_a_document_are_embedded_at_once(
    store: EmbeddedVectorStore, tenant: str, recorder: Recorder
) -> None:
    """A barrier ends only if as many calls as allowed are in progress together."""
    recorder.together = threading.Barrier(CALLS)
    document = DocumentRef(tenant, "c", "long")
    index = PassageIndex(FunctionEmbedder(), store)
    assert index.replace(document, 1, passages(tenant)[: 16 * CALLS])
    assert recorder.most_at_once == CALLS
    assert recorder.names == {URGENT_FUNCTION}
    assert index.count(tenant) == 16 * CALLS


def test_bulk_work_of_all_documents_makes_bounded_calls_of_its_own_function(
    store: EmbeddedVectorStore, tenant: str, recorder: Recorder
) -> None:
    index = PassageIndex(FunctionEmbedder(), store)

    def replace(name: str) -> None:
        document = DocumentRef(tenant, "c", name)
        with bulk_lane():
            index.replace(document, 1, [Passage(document, number, f"{name} {number}", 1) for number in range(40)])

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(replace, "abcd"))
    assert recorder.most_at_once <= CALLS
    assert recorder.names == {BULK_FUNCTION}
    assert index.count(tenant) == 160


def test_urgent_passages_wait_for_no_call_of_bulk_work(recorder: Recorder) -> None:
    """As many bulk calls as allowed are in progress, and end only together with an urgent one."""
    recorder.together = threading.Barrier(CALLS + 1)
    with bulk_lane():
        bulk = [submit(lambda: FunctionEmbedder().passages(["bulk"])) for _ in range(CALLS)]
    assert FunctionEmbedder().passages(["urgent"])
    for each in bulk:
        assert each.result(CEILING_SECONDS)
    assert recorder.names == {BULK_FUNCTION, URGENT_FUNCTION}


def test_bulk_work_waits_for_an_instance_that_is_throttled(monkeypatch: pytest.MonkeyPatch, recorder: Recorder) -> None:
    """Hundreds of workers share a few instances: each repeats its call. A waiting caller gets the error at once."""
    recorder.throttled = 3
    monkeypatch.setattr(invocation, "_FIRST_PAUSE_SECONDS", 0.0)
    with bulk_lane():
        assert FunctionEmbedder().passages(["bulk"])
    assert recorder.calls == [["bulk"]] * 4
    recorder.throttled = 1
    with pytest.raises(Unavailable):
        FunctionEmbedder().passages(["urgent"])


def test_bulk_work_gives_up_an_instance_after_its_time(monkeypatch: pytest.MonkeyPatch, recorder: Recorder) -> None:
    monkeypatch.setattr(function, "_THROTTLED_SECONDS", 0.0)
    recorder.throttled = 2
    with bulk_lane(), pytest.raises(Unavailable):
        FunctionEmbedder().passages(["bulk"])
    assert recorder.calls == [["bulk"]]


def test_interrupted_document_is_resumed(store: EmbeddedVectorStore, tenant: str, recorder: Recorder) -> None:
    document = DocumentRef(tenant, "c", "long")
    index = PassageIndex(FunctionEmbedder(), store)
    recorder.failing_text = "Line 32 of a long text."
    with pytest.raises(Unavailable):
        index.replace(document, 1, passages(tenant), resume=True)
    assert not index.holds(document, 1)
    assert index.count(tenant) == 32
    recorder.failing_text = None
    recorder.calls.clear()
    assert index.replace(document, 1, passages(tenant), resume=True)
    assert sum(map(len, recorder.calls)) == 48
    assert index.count(tenant) == 80
    assert index.holds(document, 1)
    hits = index.search(SearchQuestion("Line 79 of a long text.", tenant, ("c",))).hits
    assert hits[0].passage.ordinal == 79


def test_a_document_indexed_anew_is_embedded_again(store: EmbeddedVectorStore, tenant: str, recorder: Recorder) -> None:
    document = DocumentRef(tenant, "c", "long")
    index = PassageIndex(FunctionEmbedder(), store)
    for _ in range(2):
        recorder.calls.clear()
        assert index.replace(document, 1, passages(tenant))
        assert sum(map(len, recorder.calls)) == 80
