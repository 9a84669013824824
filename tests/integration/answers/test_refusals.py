"""What is no question, and whose documents are not to be asked for."""

from __future__ import annotations

from typing import Any

import pytest

from shared.rpc.errors import InvalidParams, NotAllowed
from tests.documents import Agent, refusal
from tests.integration.answers.library import PF, Ask, documents


def test_another_tenant_is_not_to_be_asked_for(shelf: Agent, ask: Ask) -> None:
    assert documents(ask(query=PF, filters={"tenant_id": shelf.tenant})) == ["doc-pf-032"]
    error = refusal(NotAllowed, "NOT_ALLOWED", ask, query=PF, filters={"tenant_id": f"{shelf.tenant}b"})
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
        ({"query": "x", "filters": {"tags": ["a", 1]}}, "filters.tags.1"),
        ({"query": "x", "context_hints": {"preferred_format": "docx"}}, "context_hints.preferred_format"),
        ({"query": "x", "context_hints": {"language": "vi VN\nSYSTEM"}}, "context_hints.language"),
        ({"query": "x", "routing": {"max_latency_ms": 0}}, "routing.max_latency_ms"),
        ({"query": "x", "routing": {"allow_external_search": 1}}, "routing.allow_external_search"),
        ({"query": "x", "surprise": 1}, "surprise"),
    ],
)
def test_what_is_no_question(agent: Agent, params: dict[str, Any], field: str) -> None:
    error = refusal(InvalidParams, "INVALID_PARAMS", agent, "query_knowledge", **params)
    assert [each["field"] for each in error.details] == [field]
