"""Two lanes of embedding on one machine: functions, index and store are real, and the model waits for the test."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from infra.local.functions import Functions
from infra.local.template import load
from shared.platform.background import submit
from shared.platform.config import config
from shared.platform.lanes import bulk_lane, current_lane
from shared.platform.runtime import runtime
from shared.search.embedding import e5, function
from shared.search.embedding.function import FunctionEmbedder
from shared.search.embedding.slots import EmbeddingSlots
from shared.search.index import PassageIndex
from shared.search.passages import DocumentRef, Passage
from tests.helpers.limits import LONG_SECONDS
from tests.helpers.wait import CEILING_SECONDS, until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from infra.local.search_engine.embedded import EmbeddedVectorStore

PASSAGES = 40


class Model:
    """The model's session. Texts that begin with "bulk" or "slow" wait until the test lets them end."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        """The first words of the texts."""
        self.may_end = {"bulk": threading.Semaphore(0), "slow": threading.Semaphore(0)}

    def run(self, _prefix: str, text: str) -> tuple[Any, Any]:
        """Return vectors of one token."""
        kind = text.partition(" ")[0]
        self.begun.append(kind)
        if kind in self.may_end:
            assert self.may_end[kind].acquire(timeout=LONG_SECONDS)
        return np.ones((1, 384), np.float32), np.ones((1, 384), np.float32)


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[Model]:
    """Embed on a machine of one core, with bulk work that never runs during urgent work."""
    model, slots = Model(), EmbeddingSlots(1, LONG_SECONDS)
    monkeypatch.setattr(e5, "_engine", lambda: model)
    monkeypatch.setattr(e5, "_slots", lambda: slots)
    monkeypatch.setattr(runtime, "functions", Functions(load().functions))
    monkeypatch.setenv("KHO_EMBEDDING_CALLS", "2")
    config.cache_clear()
    function._bulk_calls.cache_clear()
    yield model
    for each in model.may_end.values():
        each.release(PASSAGES)
    monkeypatch.undo()
    config.cache_clear()
    function._bulk_calls.cache_clear()


def index_large_document(store: EmbeddedVectorStore, document: DocumentRef) -> bool:
    """Index a document as a stream's worker does."""
    passages = [Passage(document, number, f"bulk {number}", 1) for number in range(PASSAGES)]
    with bulk_lane():
        return PassageIndex(FunctionEmbedder(), store).replace(document, 1, passages)


def test_what_a_caller_waits_for_goes_before_bulk_work(store: EmbeddedVectorStore, tenant: str, model: Model) -> None:
    """A small document that is written while bulk texts run and wait is embedded next, and waits for none of them."""
    large, small = DocumentRef(tenant, "c", "large"), DocumentRef(tenant, "c", "small")
    indexing = submit(lambda: index_large_document(store, large))
    until(lambda: model.begun)
    written = [Passage(small, number, f"urgent {number}", 1) for number in range(3)]
    index = PassageIndex(FunctionEmbedder(), store)
    assert submit(lambda: index.replace(small, 1, written)).result(CEILING_SECONDS)
    submit(lambda: FunctionEmbedder().question("urgent question")).result(CEILING_SECONDS)
    assert model.begun == ["bulk", *["urgent"] * 4]
    model.may_end["bulk"].release(PASSAGES)
    assert indexing.result(CEILING_SECONDS)
    assert index.count(tenant, "c") == PASSAGES + 3


def test_bulk_work_yields_after_each_text(store: EmbeddedVectorStore, tenant: str, model: Model) -> None:
    """While an urgent text is embedded, no second text of a bulk call begins."""
    document = DocumentRef(tenant, "c", "large")
    indexing = submit(lambda: index_large_document(store, document))
    for number in range(3):
        until(lambda: model.begun.count("bulk") == number + 1)  # noqa: B023 - called here
        urgent = submit(lambda: FunctionEmbedder().passages(["slow"]))
        until(lambda: model.begun.count("slow") == number + 1)  # noqa: B023 - called here
        model.may_end["bulk"].release()
        until(lambda: not e5._slots()._running["bulk"])
        assert model.begun == ["bulk", "slow"] * (number + 1)
        model.may_end["slow"].release()
        urgent.result(CEILING_SECONDS)
    model.may_end["bulk"].release(PASSAGES)
    assert indexing.result(CEILING_SECONDS)


def test_the_lane_reaches_every_thread_of_the_work() -> None:
    assert current_lane() == "urgent"
    with bulk_lane():
        assert submit(current_lane).result(CEILING_SECONDS) == "bulk"
    with ThreadPoolExecutor(1) as others:
        assert others.submit(current_lane).result(CEILING_SECONDS) == "urgent"
