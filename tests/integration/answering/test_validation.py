"""Invalid questions, and documents that a caller may not query."""

from __future__ import annotations

from typing import Any

import pytest

from shared.rpc.errors import InvalidParams, NotAllowed
from tests.helpers.answer_library import PF, Ask, cited_documents
from tests.helpers.document_agent import DocumentAgent, expect_error


def test_other_tenants_are_rejected(shelf: DocumentAgent, ask: Ask) -> None:
    assert cited_documents(ask(query=PF, filters={"tenant_id": shelf.tenant})) == ["doc-pf-032"]
    error = expect_error(NotAllowed, "NOT_ALLOWED", ask, query=PF, filters={"tenant_id": f"{shelf.tenant}b"})
    assert error.details == {"field": "filters.tenant_id"}


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({}, "query"),
        ({"query": ""}, "query"),
        ({"query": " \n"}, "query"),
        ({"query": "x" * 2049}, "query"),
        ({"query": "x", "top_k": 0}, "top_k"),
        ({"query": "x", "top_k": 21}, "top_k"),
        ({"query": "x", "filters": {"tag": []}}, "filters.tag"),
        ({"query": "x", "filters": {"metadata": {"n": {}}}}, "filters.metadata"),
        ({"query": "x", "filters": {"metadata": {"n": "x" * 512}}}, "filters.metadata"),
        ({"query": "x", "filters": {"tags": ["a", 1]}}, "filters.tags.1"),
        ({"query": "x", "context_hints": {"preferred_format": "docx"}}, "context_hints.preferred_format"),
        ({"query": "x", "context_hints": {"language": "vi VN\nSYSTEM"}}, "context_hints.language"),
        ({"query": "x", "routing": {"max_latency_ms": 0}}, "routing.max_latency_ms"),
        ({"query": "x", "routing": {"allow_external_search": 1}}, "routing.allow_external_search"),
        ({"query": "x", "surprise": 1}, "surprise"),
    ],
)
def test_invalid_questions(agent: DocumentAgent, params: dict[str, Any], field: str) -> None:
    error = expect_error(InvalidParams, "INVALID_PARAMS", agent, "query_knowledge", **params)
    assert [each["field"] for each in error.details] == [field]
