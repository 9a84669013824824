"""Answers never quote text that an update or a deletion has removed."""

from __future__ import annotations

import json
import math
from functools import partial
from typing import TYPE_CHECKING

from shared.documents import immediate_indexing
from tests.helpers.answer_library import TRAVEL, cited_documents, write_document

if TYPE_CHECKING:
    import pytest

    from tests.helpers.document_agent import DocumentAgent
    from tests.helpers.model_server import ModelServer


def test_removed_text_is_never_quoted(library: DocumentAgent, with_model: ModelServer) -> None:
    ask = partial(library, "query_knowledge", query="Để gỡ bỏ PF thì làm gì?")
    assert "pf destroy" in json.dumps(ask())
    body = "# Gỡ bỏ PF\n\nĐể gỡ bỏ PF, hãy hỏi nhóm hạ tầng trước.\n"
    library("update_document", document_id="doc-pf-032", patch={"content": {"body": body}})
    with_model.asked.clear()
    answer = ask()
    assert cited_documents(answer) == ["doc-pf-032"]
    for text in (json.dumps(answer), with_model.asked[0].prompt):
        assert "pf destroy" not in text
    library("delete_document", document_id="doc-pf-032")
    assert ask()["context"] == []


def test_removed_text_is_not_quoted_while_the_index_lags(
    library: DocumentAgent, with_model: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(immediate_indexing._index, "_paused_until", math.inf)
    library("update_document", document_id="doc-pf-032", patch={"content": {"body": "# Gỡ bỏ PF\n\nHãy hỏi trước."}})
    library("delete_document", document_id="doc-travel")
    for question in ("Để gỡ bỏ PF thì làm gì?", TRAVEL):
        answer = library("query_knowledge", query=question)
        assert (answer["response"], answer["context"]) == ("", [])
        assert answer["usage"]["qdrant_hits"] > 0
    assert with_model.asked == []


def test_removed_documents_do_not_displace_existing_ones(agent: DocumentAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(30):
        write_document(agent, f"fern-{number}", "When are ferns watered? Ferns are watered at dawn.")
    write_document(agent, "moss", "Like ferns, moss is watered when its cushions are dry.")
    monkeypatch.setattr(immediate_indexing._index, "_paused_until", math.inf)
    for number in range(30):
        agent("delete_document", document_id=f"fern-{number}")
    for routing in ({}, {"max_latency_ms": 1}):
        assert cited_documents(agent("query_knowledge", query="When are ferns watered?", routing=routing)) == ["moss"]
