"""Summaries by a model through a running server: the callers' results, and logs without content."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from tests.helpers.kho_server import KhoServer
from tests.helpers.model_server import FAILING, KEY, ModelServer, reply_with

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def server(model: ModelServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KhoServer]:
    """Yield a server with automatic summaries."""
    settings = {"AUTO_SUMMARY": "true"} | model.settings(KEY)
    with KhoServer(tmp_path_factory.mktemp("kho") / "data", environment=settings) as running:
        yield running


@pytest.fixture
def chat(server: KhoServer) -> str:
    """Return a conversation that is long enough."""
    conversation_id = f"chat_{uuid4().hex}"
    for number in range(10):
        server.call(
            "memory-server/memory/add_message", conversation_id=conversation_id, role="user", content=f"{number}"
        )
    return conversation_id


def test_summary_is_generated_once(server: KhoServer, model: ModelServer, chat: str) -> None:
    call_count = len(model.asked)
    for text in ("Tóm tắt cuộc trò chuyện…", "another"):
        model.behave = reply_with(text)
        summary = server.call("memory-server/memory/get_or_create_summary", conversation_id=chat, language="vi")
        assert summary == {"summary": "Tóm tắt cuộc trò chuyện…"}
    assert len(model.asked) == call_count + 1
    assert model.asked[-1].headers["authorization"] == f"Bearer {KEY}"


def test_failing_model(server: KhoServer, model: ModelServer, chat: str) -> None:
    for failing in FAILING.values():
        model.behave = failing
        assert server.call("memory-server/memory/get_or_create_summary", conversation_id=chat) == {"summary": ""}
    assert server.call("memory-server/memory/get_summary", conversation_id=chat) == {"summary": ""}
    logged = server.printed() + "".join(file.read_text() for file in server.data.glob("*.log*"))
    assert '"failure":"status 500"' in logged
    assert KEY not in logged
    assert "crashed" not in logged
