"""The next query sees each write: changed text is found and removed text is not."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from tests.helpers.wait import until

if TYPE_CHECKING:
    from tests.helpers.kho_server import KhoServer

FERNS = "Ferns are watered at dawn."


class Shelf:
    """Documents with their own tag."""

    def __init__(self, server: KhoServer) -> None:
        self.server = server
        self.tag = uuid4().hex

    def id(self, name: str) -> str:
        return f"{name}-{self.tag}"

    def create(self, name: str, parent: str = "root", body: str = FERNS) -> None:
        self("create_document", name, parent_id=parent, content=text(body), metadata={"tags": [self.tag]})

    def __call__(self, method: str, name: str, **params: Any) -> Any:
        return self.server.call(f"agent-data/{method}", document_id=self.id(name), **params)

    def found(self) -> dict[str, str]:
        """Return the snippets of the next query's context by document."""
        params = {"query": "When are ferns watered?", "top_k": 20, "filters": {"tags": [self.tag]}}
        answer = self.server.post("/agent-data/query_knowledge", json.dumps(params).encode())
        assert answer.status == 200, answer.data
        return {each["document_id"].partition("-")[0]: each["snippet"] for each in json.loads(answer.data)["context"]}


@pytest.fixture
def shelf(server: KhoServer) -> Shelf:
    return Shelf(server)


def text(body: str) -> dict[str, str]:
    return {"mime_type": "text/plain", "body": body}


def test_search_follows_a_documents_lifecycle(shelf: Shelf) -> None:
    shelf.create("a")
    assert shelf.found() == {"a": FERNS}
    shelf("update_document", "a", patch={"content": text("Ferns are watered at dusk.")})
    assert shelf.found() == {"a": "Ferns are watered at dusk."}
    shelf.create("folder", body="Nothing but a folder of rockets.")
    shelf("move_document", "a", new_parent_id=shelf.id("folder"))
    assert shelf.found()["a"] == "Ferns are watered at dusk."
    shelf("update_document", "a", patch={"is_human_readable": False})
    assert shelf.found()["a"] == "Ferns are watered at dusk."
    shelf("delete_document", "folder", recursive=True)
    assert shelf.found() == {}
    shelf("restore_document", "folder", recursive=True)
    assert shelf.found()["a"] == "Ferns are watered at dusk."
    shelf("update_document", "a", patch={"metadata": {"tags": ["elsewhere"]}})
    assert "a" not in shelf.found()


def test_scheduled_deletion_takes_effect_without_a_call(shelf: Shelf) -> None:
    shelf.create("a")
    moment = datetime.now(UTC) + timedelta(seconds=1)
    shelf("delete_document", "a", delete_at=moment.isoformat())
    seen = shelf.found()
    assert seen == {"a": FERNS} or datetime.now(UTC) > moment
    until(lambda: datetime.now(UTC) >= moment)
    assert shelf.found() == {}
