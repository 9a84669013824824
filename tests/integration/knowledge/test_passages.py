"""A document's passages as they are listed, and the parts of the scores by which they are found."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from infra.local.search_engine.index_process import IndexProcess
from shared.aws.dynamodb import Table
from shared.knowledge.collections import CollectionStore
from shared.knowledge.documents import CollectionDocuments
from shared.knowledge.models import NewKnowledgeDocument
from shared.platform.config import config
from shared.rpc import response_size
from shared.rpc.caller import ROLES, Caller
from shared.rpc.errors import InvalidParams, KhoError, Unavailable
from shared.search.embedding.e5 import E5
from shared.search.index import knowledge_index
from tests.helpers.memory_index import MemoryIndex
from tests.helpers.research_client import call_research_agent

GUIDE = """# Ferns

Ferns like shade and moist soil.

## Watering

Water ferns early in the morning.

| month | litres |
|---|---|
| May | 2 |

## Pump

```python
water(litres=2)
```
"""


@pytest.fixture(scope="module")
def caller(store: str) -> Caller:
    """Return a caller with a collection of two documents."""
    E5().question("the model is loaded before anybody's time runs")
    caller = Caller("tester", frozenset(ROLES), f"tenant-{uuid4().hex}")
    call_research_agent(caller, "manage_collections", action="create", collection_name="garden")
    moss = "# Moss\n\n" + "\n\n".join(f"## Bed {number}\n\nMoss number {number} grows here." for number in range(7))
    documents = [{"path": "plants/ferns.md", "content": GUIDE}, {"path": "moss.md", "content": moss}]
    call_research_agent(caller, "ingest_documents", collection="garden", documents=documents)
    return caller


def list_passages(caller: Caller, path: str = "plants/ferns.md", **params: Any) -> Any:
    return call_research_agent(caller, "list_passages", collection_name="garden", path=path, **params)


def test_passages_have_heading_path_kind_and_position(caller: Caller) -> None:
    """A document's passages are listed in order, each with its heading path and its kind."""
    page = list_passages(caller)
    assert page["document"]["path"] == "plants/ferns.md"
    assert page["document"]["chunks"] == len(page["passages"])
    assert [each["chunk_sequence_id"] for each in page["passages"]] == [*range(1, len(page["passages"]) + 1)]
    kinds = {each["content_type"]: each for each in page["passages"]}
    assert set(kinds) == {"prose", "table", "code_block"}
    assert kinds["table"]["header_path"] == "Ferns > Watering"
    assert kinds["table"]["content"].endswith("| month | litres |\n|---|---|\n| May | 2 |")
    assert "next_cursor" not in page


@pytest.mark.parametrize("limit", [1, 3, 7])
def test_pages_join_without_repeat_or_gap(caller: Caller, limit: int) -> None:
    whole = list_passages(caller, "moss.md")["passages"]
    pages = [list_passages(caller, "moss.md", limit=limit)]
    while "next_cursor" in pages[-1]:
        pages.append(list_passages(caller, "moss.md", limit=limit, cursor=pages[-1]["next_cursor"]))
    assert [each for page in pages for each in page["passages"]] == whole
    assert all(len(page["passages"]) <= limit for page in pages)


def test_page_ends_before_the_answer_is_too_large(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = list_passages(caller, "moss.md")["passages"]
    monkeypatch.setattr(response_size, "MAX_PAGE_BYTES", 700)
    first = list_passages(caller, "moss.md")
    assert 0 < len(first["passages"]) < len(whole)
    second = list_passages(caller, "moss.md", cursor=first["next_cursor"])
    assert second["passages"][0] == whole[len(first["passages"])]


def test_cursor_of_another_revision_is_refused(caller: Caller) -> None:
    """A page never continues the passages of another revision."""
    for text in ("# One\n\na\n\n# Two\n\nb", "# One\n\nc\n\n# Two\n\nd"):
        sent = [{"path": "changing.md", "content": text}]
        call_research_agent(caller, "ingest_documents", collection="garden", documents=sent)
        if text.endswith("b"):
            cursor = list_passages(caller, "changing.md", limit=1)["next_cursor"]
    with pytest.raises(InvalidParams):
        list_passages(caller, "changing.md", cursor=cursor)
    assert [each["content"][-1] for each in list_passages(caller, "changing.md")["passages"]] == ["c", "d"]


@pytest.mark.parametrize(
    ("collection", "path", "code"),
    [("garden", "absent.md", "DOCUMENT_NOT_FOUND"), ("absent", "moss.md", "COLLECTION_NOT_FOUND")],
)
def test_unknown_document_or_collection_is_not_found(caller: Caller, collection: str, path: str, code: str) -> None:
    with pytest.raises(KhoError) as refused:
        call_research_agent(caller, "list_passages", collection_name=collection, path=path)
    assert refused.value.code == code


def test_passages_of_an_older_revision_are_not_listed(caller: Caller) -> None:
    """While a document is being indexed, passages that it no longer has are not shown."""
    table, tenant = Table(config().knowledge_table), caller.tenant_id
    collection = CollectionStore(table, tenant).require("garden")
    unavailable = MemoryIndex()
    CollectionDocuments(table, tenant, collection, knowledge_index()).put(NewKnowledgeDocument("late.md", "# A\n\nold"))
    unavailable.down = True
    put = CollectionDocuments(table, tenant, collection, unavailable).put(NewKnowledgeDocument("late.md", "# A\n\nnew"))
    page = list_passages(caller, "late.md")
    assert put.pending
    assert page["passages"] == []
    assert page["document"]["indexed"] is False


def test_unavailable_index_is_a_retryable_error(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> Any:
        raise Unavailable

    monkeypatch.setattr(IndexProcess, "read", fail)
    with pytest.raises(Unavailable):
        list_passages(caller)


def test_parts_explain_each_score(caller: Caller) -> None:
    """With `explain`, each result has the parts of its score, which is their weighted sum."""
    params = {"query": "How are ferns watered?", "document_context": "A plan for watering in May"}
    results = call_research_agent(caller, "query_knowledge_base", **params, explain=True)["results"]
    for result in results:
        total = sum(part["value"] * part["weight"] for part in result["score_parts"])
        assert result["relevance_score"] == pytest.approx(min(1.0, max(0.0, total)), abs=0.001)
        assert result["collection"] == "garden"
    names = {part["name"] for result in results for part in result["score_parts"]}
    assert names == {"meaning", "tokens", "beginning", "words", "document_words", "context"}
    plain = call_research_agent(caller, "query_knowledge_base", **params)["results"]
    assert plain == [
        {name: value for name, value in each.items() if name not in ("collection", "score_parts")} for each in results
    ]
