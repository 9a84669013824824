"""The documents of a collection: listed in pages, and taken out one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from shared.rpc.caller import ROLES, Caller
from shared.rpc.errors import InvalidParams, KhoError
from tests.helpers.research_client import call_research_agent

if TYPE_CHECKING:
    from shared.knowledge.models import Collection

PATHS = ["a.md", "docs/a.md", "docs/b.md", "docs/é.md", "docs\U0010fffe", "e.md"]


@pytest.fixture
def caller(tenant: str, collection: Collection) -> Caller:
    """Return a caller with a collection of documents."""
    caller = Caller("tester", frozenset(ROLES), tenant)
    documents = [{"path": path, "content": f"# {path}\n\nRoses like sun."} for path in PATHS]
    call_research_agent(caller, "ingest_documents", collection=collection.name, documents=documents)
    return caller


def list_documents(caller: Caller, **params: Any) -> list[str]:
    """Return the listed paths, page by page."""
    paths: list[str] = []
    while True:
        page = call_research_agent(caller, "list_documents", collection_name="notes", **params)
        paths += [each["path"] for each in page["documents"]]
        if "next_cursor" not in page:
            return paths
        params["cursor"] = page["next_cursor"]


@pytest.mark.parametrize("limit", [1, 2, 100])
@pytest.mark.parametrize("prefix", ["", "docs", "docs/", "docs/a.md", "none", "x" * 900, "é" * 900])
def test_pages_of_a_prefix_join_without_repeat_or_gap(caller: Caller, limit: int, prefix: str) -> None:
    """Documents are listed by path, all of them or those whose paths begin with a prefix."""
    assert list_documents(caller, limit=limit, prefix=prefix) == [each for each in PATHS if each.startswith(prefix)]


def test_cursor_of_another_prefix_is_refused(caller: Caller) -> None:
    page = call_research_agent(caller, "list_documents", collection_name="notes", limit=1)
    with pytest.raises(InvalidParams):
        list_documents(caller, prefix="docs/", cursor=page["next_cursor"])


def test_removed_document_is_listed_and_found_no_more(caller: Caller) -> None:
    """A removed document is in no list, count or search; it can be added again."""
    removed = call_research_agent(caller, "remove_document", collection_name="notes", path="docs/a.md")
    assert removed == {
        "status": "success",
        "collection": "notes",
        "path": "docs/a.md",
        "message": "Removed docs/a.md from the collection 'notes'.",
    }
    rest = [each for each in PATHS if each != "docs/a.md"]
    assert list_documents(caller, limit=2) == rest
    info = call_research_agent(caller, "manage_collections", action="info", collection_name="notes")["collection"]
    assert info["documents"] == len(rest)
    results = call_research_agent(caller, "query_knowledge_base", query="roses", collections="notes")["results"]
    assert sorted(each["source_document"] for each in results) == rest
    again = [{"path": "docs/a.md", "content": "Roses like sun."}]
    assert call_research_agent(caller, "ingest_documents", collection="notes", documents=again)["added"] == 1
    assert list_documents(caller) == PATHS


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({"collection_name": "notes", "path": "none.md"}, "DOCUMENT_NOT_FOUND"),
        ({"collection_name": "none", "path": "a.md"}, "COLLECTION_NOT_FOUND"),
        ({"collection_name": "notes", "path": "a.md", "confirm": "b.md"}, "INVALID_PARAMS"),
    ],
)
def test_removal_of_what_is_not_there_or_not_confirmed_is_refused(
    caller: Caller, params: dict[str, str], code: str
) -> None:
    with pytest.raises(KhoError) as refused:
        call_research_agent(caller, "remove_document", **params)
    assert refused.value.code == code
    assert list_documents(caller) == PATHS
