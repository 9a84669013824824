"""An outage of the Qdrant server: writes continue, and the index catches up afterwards."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from tests.helpers.kho_server import KhoServer
from tests.helpers.qdrant_server import QdrantServer, running_qdrant
from tests.helpers.wait import until

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def cluster() -> Iterator[QdrantServer]:
    with running_qdrant() as running:
        yield running


@pytest.fixture
def qdrant(cluster: QdrantServer) -> Iterator[QdrantServer]:
    """Yield the server of the index, which runs again after each test."""
    yield cluster
    cluster.wake()
    cluster.stop()
    cluster.start()


@pytest.fixture(scope="module")
def server(cluster: QdrantServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KhoServer]:
    environment = {"KHO_QDRANT_URL": cluster.url, "KHO_SEARCH_PROXY": "http://127.0.0.1:9"}
    data = tmp_path_factory.mktemp("away") / "data"
    with KhoServer(data, environment=environment) as running:
        yield running


class Shelf:
    """Documents with their own tag."""

    def __init__(self, server: KhoServer) -> None:
        self.server = server
        self.tag = uuid4().hex
        self.create("before")
        until(lambda: set(self.found()) == {"before"})

    def create(self, name: str, body: str = "Ferns are watered at dawn.") -> None:
        content = {"mime_type": "text/plain", "body": body}
        self("create_document", name, parent_id="root", content=content, metadata={"tags": [self.tag]})

    def __call__(self, method: str, name: str, **params: Any) -> Any:
        return self.server.call(f"agent-data/{method}", document_id=f"{name}-{self.tag}", **params)

    def found(self) -> dict[str, str]:
        """Return the snippets that a query finds now, by document."""
        filters = {"tags": [self.tag]}
        response = self.server.call(
            "agent-data/query_knowledge", query="When are ferns watered?", top_k=20, filters=filters
        )
        return {each["document_id"].partition("-")[0]: each["snippet"] for each in response["context"]}


@pytest.fixture
def shelf(server: KhoServer, qdrant: QdrantServer) -> Shelf:
    if server.process.poll() is not None:
        server.start()
    return Shelf(server)


def failed_attempts(server: KhoServer) -> int:
    """Return how often the worker has failed to index a document."""
    lines = (server.data / "kho.log").read_text().splitlines()
    return sum('"workers/index_documents"' in line and '"outcome":"UNAVAILABLE"' in line for line in lines)


def test_writes_during_index_outage_are_found_after_recovery(
    server: KhoServer, shelf: Shelf, qdrant: QdrantServer
) -> None:
    qdrant.stop()
    before = failed_attempts(server)
    for name in ("a", "b", "c"):
        shelf.create(name)
    shelf("update_document", "b", patch={"content": {"body": "Ferns? Never watered, says b."}})
    shelf("delete_document", "before")
    shelf("delete_document", "c")
    until(lambda: failed_attempts(server) > before + 2)
    qdrant.start()
    until(lambda: set(shelf.found()) == {"a", "b"})
    assert shelf.found()["b"] == "Ferns? Never watered, says b."
    until(lambda: qdrant.count(kind="passage", tags=shelf.tag) == 2)


def test_hanging_index_delays_no_write(shelf: Shelf, qdrant: QdrantServer) -> None:
    qdrant.hang()
    names = [f"a{number}" for number in range(4)]
    for name in names:
        shelf.create(name)
    qdrant.wake()
    until(lambda: set(shelf.found()) == {"before", *names})


def test_long_text_is_found_after_stream_indexing(shelf: Shelf) -> None:
    shelf.create("long", "Ferns are watered at dusk." + " " * 65_536)
    until(lambda: set(shelf.found()) == {"before", "long"})


def test_restarted_server_catches_up_after_index_outage(server: KhoServer, shelf: Shelf, qdrant: QdrantServer) -> None:
    qdrant.stop()
    shelf.create("a")
    server.kill()
    server.start()
    shelf.create("b")
    qdrant.start()
    until(lambda: set(shelf.found()) == {"before", "a", "b"})


def test_a_server_ends_while_it_indexes_a_long_text(server: KhoServer, shelf: Shelf) -> None:
    """Stop a server during work that takes minutes of processor time."""
    idle = processor_seconds(server)
    shelf.create("long", "Moss grows on stones, says line after line.\n\n" * 40_000)
    until(lambda: processor_seconds(server) > idle + 1)
    assert server.interrupt() == 0
    assert "Traceback" not in server.printed()


def processor_seconds(server: KhoServer) -> float:
    """Return the processor time that the server has used."""
    fields = Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
