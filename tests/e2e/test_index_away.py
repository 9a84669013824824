"""A Qdrant server that goes away: writes go on as if nothing were, and what it missed is found when it is back."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.server import Server
from tests.qdrant import Qdrant, running_qdrant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CREATE = "agent-data/create_document"
SECONDS = 60.0
"""Within which an index that is back has caught up: a try is never more than five seconds from the next."""


@pytest.fixture
def qdrant() -> Iterator[Qdrant]:
    with running_qdrant() as running:
        yield running


@pytest.fixture
def server(qdrant: Qdrant, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    environment = {"KHO_QDRANT_URL": qdrant.url, "KHO_SEARCH_PROXY": "http://127.0.0.1:9"}
    with Server(tmp_path_factory.mktemp("away") / "data", environment=environment) as running:
        yield running


def create(server: Server, document_id: str, body: str = "Ferns are watered at dawn.", **more: Any) -> float:
    """Create a document; how long it took."""
    started = time.monotonic()
    content = {"mime_type": "text/plain", "body": body}
    server.call(CREATE, document_id=document_id, parent_id="root", content=content, **more)
    return time.monotonic() - started


def found(server: Server, query: str = "When are ferns watered?") -> set[str]:
    """Which documents the next query answers from."""
    answer = server.call("agent-data/query_knowledge", query=query, top_k=20)
    return {each["document_id"] for each in answer["context"]}


def eventually(wanted: set[str], look: Callable[[], set[str]]) -> None:
    deadline = time.monotonic() + SECONDS
    while (seen := look()) != wanted:
        assert time.monotonic() < deadline, seen
        time.sleep(0.1)


def test_what_was_written_while_the_index_was_away_is_found_when_it_is_back(server: Server, qdrant: Qdrant) -> None:
    create(server, "before")
    assert found(server) == {"before"}
    qdrant.stop()
    assert create(server, "a") < 2
    assert create(server, "b") < 2
    server.call("agent-data/update_document", document_id="b", patch={"content": {"body": "Ferns? Never, says b."}})
    server.call("agent-data/delete_document", document_id="before")
    # Twelve seconds and more: the pauses between tries have grown to their longest.
    time.sleep(12)
    qdrant.start()
    eventually({"a", "b"}, lambda: found(server))
    answer = server.call("agent-data/query_knowledge", query="Are ferns watered, says b?")
    assert "Ferns? Never, says b." in {each["snippet"] for each in answer["context"]}
    eventually({""}, lambda: {"" for _ in range(qdrant.count(kind="passage") == 2)})


def test_a_hanging_index_delays_no_write_for_long(server: Server, qdrant: Qdrant) -> None:
    create(server, "before")
    qdrant.hang()
    assert create(server, "a") < 4, "it waits for the first answer of the index"
    assert [create(server, f"b{number}") < 1 for number in range(5)] == [True] * 5, "the next do not"
    qdrant.wake()
    eventually({"before", "a", *(f"b{number}" for number in range(5))}, lambda: found(server))


def test_a_server_that_was_killed_while_the_index_was_away_catches_up_after(server: Server, qdrant: Qdrant) -> None:
    create(server, "before")
    qdrant.stop()
    create(server, "a")
    server.kill()
    qdrant.start()
    server.start()
    eventually({"before", "a"}, lambda: found(server))


def test_a_server_starts_and_takes_writes_while_the_index_is_away(server: Server, qdrant: Qdrant) -> None:
    assert server.interrupt() == 0
    qdrant.stop()
    server.start()
    assert create(server, "a") < 4
    qdrant.start()
    eventually({"a"}, lambda: found(server))


def test_a_long_text_is_found_as_soon_as_the_stream_has_brought_it(server: Server) -> None:
    assert create(server, "long", "Moss grows on stones.\n\n" * 4_000 + "Ferns are watered at dusk.") < 4
    eventually({"long"}, lambda: found(server, "Ferns are watered at dusk"))
