"""A Qdrant server that goes away: writes go on as if nothing were, and what it missed is found when it is back."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from tests.e2e.server import Server
from tests.qdrant import Qdrant, running_qdrant

if TYPE_CHECKING:
    from collections.abc import Iterator

SECONDS: float = 60
"""Within which an index that is back has caught up: a try is never more than five seconds from the next."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Qdrant]:
    with running_qdrant() as running:
        yield running


@pytest.fixture
def qdrant(cluster: Qdrant) -> Iterator[Qdrant]:
    """The server of the index, which is there again after each test."""
    yield cluster
    cluster.wake()
    cluster.stop()
    cluster.start()


@pytest.fixture(scope="module")
def server(cluster: Qdrant, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    environment = {"KHO_QDRANT_URL": cluster.url, "KHO_SEARCH_PROXY": "http://127.0.0.1:9"}
    with Server(tmp_path_factory.mktemp("away") / "data", environment=environment) as running:
        yield running


class Shelf:
    """Documents that bear a tag of their own."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.tag = uuid4().hex
        self.create("before")
        eventually({"before"}, self)

    def create(self, name: str, body: str = "Ferns are watered at dawn.") -> float:
        """Create a document; how long it took."""
        started = time.monotonic()
        content = {"mime_type": "text/plain", "body": body}
        self("create_document", name, parent_id="root", content=content, metadata={"tags": [self.tag]})
        return time.monotonic() - started

    def __call__(self, method: str, name: str, **params: Any) -> Any:
        return self.server.call(f"agent-data/{method}", document_id=f"{name}-{self.tag}", **params)

    def found(self) -> dict[str, str]:
        """What the next query answers from: snippets by document."""
        filters = {"tags": [self.tag]}
        asked = self.server.call(
            "agent-data/query_knowledge", query="When are ferns watered?", top_k=20, filters=filters
        )
        return {each["document_id"].partition("-")[0]: each["snippet"] for each in asked["context"]}


@pytest.fixture
def shelf(server: Server, qdrant: Qdrant) -> Shelf:
    return Shelf(server)


def eventually(wanted: set[str], shelf: Shelf) -> None:
    deadline = time.monotonic() + SECONDS
    while (seen := set(shelf.found())) != wanted:
        assert time.monotonic() < deadline, seen
        time.sleep(0.1)


def test_what_was_written_while_the_index_was_away_is_found_when_it_is_back(shelf: Shelf, qdrant: Qdrant) -> None:
    qdrant.stop()
    assert [shelf.create(name) < 2 for name in ("a", "b", "c")] == [True] * 3
    shelf("update_document", "b", patch={"content": {"body": "Ferns? Never watered, says b."}})
    shelf("delete_document", "before")
    shelf("delete_document", "c")
    time.sleep(12)  # away for longer than it used to be waited for
    qdrant.start()
    eventually({"a", "b"}, shelf)
    assert shelf.found()["b"] == "Ferns? Never watered, says b."
    deadline = time.monotonic() + SECONDS
    while (kept := qdrant.count(kind="passage", tags=shelf.tag)) != 2:
        assert time.monotonic() < deadline, kept
        time.sleep(0.1)


def test_a_hanging_index_delays_no_write_for_long(shelf: Shelf, qdrant: Qdrant) -> None:
    qdrant.hang()
    assert shelf.create("a") < 4, "it waits for the first answer of the index"
    names = [f"b{number}" for number in range(5)]
    assert [shelf.create(name) < 1.5 for name in names] == [True] * 5, "the next do not"
    qdrant.wake()
    eventually({"before", "a", *names}, shelf)


def test_a_long_text_is_found_as_soon_as_the_stream_has_brought_it(shelf: Shelf) -> None:
    assert shelf.create("long", "Moss grows on stones.\n\n" * 3_000 + "Ferns are watered at dusk.") < 4
    eventually({"before", "long"}, shelf)


def test_a_server_that_was_killed_and_starts_while_the_index_is_away_catches_up(
    server: Server, shelf: Shelf, qdrant: Qdrant
) -> None:
    qdrant.stop()
    shelf.create("a")
    server.kill()
    server.start()
    assert shelf.create("b") < 4
    qdrant.start()
    eventually({"before", "a", "b"}, shelf)


def test_a_server_ends_at_once_while_it_indexes_a_long_text(server: Server, shelf: Shelf) -> None:
    shelf.create("long", "Moss grows on stones, says line after line.\n\n" * 40_000)
    time.sleep(1)  # the stream has brought it by now
    started = time.monotonic()
    assert server.interrupt() == 0
    assert time.monotonic() - started < 15, server.printed()
    assert "Traceback" not in server.printed()
    server.start()
