"""The tools, resources and prompts of an editor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from fastmcp import Client
from mcp.shared.exceptions import MCPError

from shared.rpc.mcp_catalog import mcp_catalog
from tests.helpers.editor_folder import address_of, sources, stored_hashes
from tests.helpers.mcp_editor import Editor, editor

if TYPE_CHECKING:
    from pathlib import Path


def test_tools_match_the_contract(session: Editor) -> None:
    required = {name: set(tool.input_schema.get("required", [])) for name, tool in session.tools().items()}
    assert required == {
        "query_knowledge_base": {"query"},
        "manage_collections": {"action"},
        "ingest_documents": {"path", "collection"},
        "manage_projects": {"action"},
        "augment_knowledge": {"content", "source", "collection"},
        "get_ingestion": {"job_id"},
        "list_documents": {"collection_name"},
        "remove_document": {"collection_name", "path"},
    }


@pytest.mark.usefixtures("notes")
def test_tool_schemas_match_the_mcp_endpoint(session: Editor, data: Path) -> None:
    there = {tool.name: tool for tool in session.portal.call(_asked_at, f"{address_of(data)}/mcp", "list_tools")}
    for name, tool in session.tools().items():
        here, known = (each.model_dump() for each in (tool, there[name]))
        if name == "ingest_documents":
            taken, known_there = (each.pop("input_schema")["properties"] for each in (here, known))
            assert set(known_there) - set(taken) == {"documents", "remove", "tree"}
            for shared in ("collection", "recursive"):
                assert taken[shared] == known_there[shared]
        assert here == known
    assert {each.name for each in mcp_catalog().of("research-agent/").tools} == set(session.tools())


async def _asked_at(address: str, call: str) -> list[Any]:
    async with Client(address) as client:
        return list(await getattr(client, call)())


def test_lists_continue_at_the_cursor(session: Editor, notes: str) -> None:
    session.result("manage_collections", action="create", collection_name="another")
    first = session.result("manage_collections", action="list", limit=1)
    rest = session.result("manage_collections", action="list", cursor=first["next_cursor"])
    everything = session.result("manage_collections", action="list")
    assert first["collections"] + rest["collections"] == everything["collections"]
    assert notes in [each["name"] for each in everything["collections"]]


def test_query_result_has_the_contracts_form(session: Editor, notes: str) -> None:
    answer = session.call(
        "query_knowledge_base", query="how much water does a cactus need?", collections=notes, top_k=2
    )
    result = answer.structured_content
    assert set(result) == {"status", "results", "query_refinement"}
    assert result["status"] == "success"
    first = result["results"][0]
    assert first == {
        "content": "## Cactus\n\nA cactus needs hardly any water.",
        "relevance_score": first["relevance_score"],
        "relevance_label": "Highly Relevant",
        "source_document": "docs/plants.md",
        "header_path": "Plants > Cactus",
        "metadata": {"document_title": "Plants", "content_type": "prose", "chunk_sequence_id": 2},
    }
    assert 0.75 <= first["relevance_score"] <= 1
    assert result["query_refinement"]["status"] == "optimal"
    text = answer.content[0].text
    assert "### 1. Plants — Plants > Cactus" in text
    assert "> A cactus needs hardly any water." in text


def test_code_search_and_cross_language_search(session: Editor, notes: str) -> None:
    result = session.result("query_knowledge_base", query="sharpen a knife", collections=notes)
    assert result["results"][0]["metadata"]["content_type"] == "code_block"
    assert sources(session, "squeaking bicycle brakes", notes)[0] == "docs/deep/brakes.md"


def test_document_context_changes_the_ranking(session: Editor, notes: str) -> None:
    ferns, cactus = (
        session.result("query_knowledge_base", query="water", collections=notes, document_context=context)["results"]
        for context in ("Ferns are watered daily in my garden.", "A cactus of the desert needs hardly any water.")
    )
    assert ferns[0]["header_path"] == "Plants"
    assert cactus[0]["header_path"] == "Plants > Cactus"


def test_projects_and_added_texts(session: Editor, notes: str) -> None:
    session.result("manage_collections", action="create", collection_name="tea", collection_type="fundamental")
    session.result(
        "augment_knowledge", content="Green tea is brewed at 80 °C.", source="https://tea.example", collection="tea"
    )
    again = session.result(
        "augment_knowledge",
        content="Green tea is brewed at 75 °C.",
        source="https://tea.example",
        collection="tea",
        title="Tea",
    )
    assert again["updated"] == 1
    session.result("manage_projects", action="create", project_name="kitchen", collections=f"tea, {notes}")
    project = session.result("manage_projects", action="set-defaults", project_name="kitchen", collections="tea")
    assert project["project"]["defaults"] == ["tea"]
    result = session.result("query_knowledge_base", query="temperature of water", project_name="kitchen")
    assert [each["metadata"]["document_title"] for each in result["results"]] == ["Tea"]
    session.result("manage_projects", action="unlink", project_name="kitchen", collections="tea")
    projects = session.result("manage_projects", action="list")["projects"]
    assert [each["collections"] for each in projects if each["name"] == "kitchen"] == [[notes]]


def test_resources_and_prompts(session: Editor, notes: str) -> None:
    session.result("query_knowledge_base", query="what was asked last", collections=notes)
    assert notes in [each["name"] for each in session.read("knowledge://collections")["collections"]]
    documents = session.read(f"knowledge://collections/{notes}")["documents"]
    assert "docs/plants.md" in [each["path"] for each in documents]
    assert session.read("knowledge://queries")["queries"][0]["query"] == "what was asked last"
    assert "'ferns'" in session.prompt("refine_query", query="ferns")
    assert "'a garden plan'" in session.prompt("extract_context", task="a garden plan")


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_editor_that_cannot_ask_confirms_by_an_argument(folder: Path, data: Path, mode: str) -> None:
    name = f"mute-{mode}"
    with editor(folder, data, mode=mode, asks=False) as mute:
        mute.result("manage_collections", action="create", collection_name=name)
        deletion = {"action": "delete", "collection_name": name}
        refusals: list[tuple[dict[str, Any], str]] = [
            ({}, f"with the argument confirm: '{name}'"),
            ({"confirm": "other"}, "confirm: should repeat"),
        ]
        for wrong, words in refusals:
            if mode == "legacy":
                with pytest.raises(MCPError, match=words):
                    mute.call("manage_collections", **deletion, **wrong)
            else:
                refused = mute.call("manage_collections", **deletion, **wrong)
                assert refused.is_error
                assert words in refused.content[0].text
        mute.result("augment_knowledge", content="Roses like sun.", source="roses", collection=name)
        removal = {"collection_name": name, "path": "roses"}
        if mode == "legacy":
            with pytest.raises(MCPError, match="with the argument confirm: 'roses'"):
                mute.call("remove_document", **removal)
        mute.result("remove_document", **removal, confirm="roses")
        mute.result("manage_collections", **deletion, confirm=name)
        assert mute.asked == []


@pytest.mark.usefixtures("notes")
@pytest.mark.parametrize("call", ["list_resources", "list_resource_templates", "list_prompts"])
def test_lists_are_those_of_the_endpoint(session: Editor, data: Path, call: str) -> None:
    there = session.portal.call(_asked_at, f"{address_of(data)}/mcp/knowledge", call)
    here = session.portal.call(getattr(session.client, call))
    assert here
    assert [each.model_dump() for each in here] == [each.model_dump() for each in there]


def test_deletion_requires_confirmation(session: Editor) -> None:
    session.result("manage_collections", action="create", collection_name="doomed")
    session.answer = False
    with pytest.raises(MCPError, match="the deletion was not confirmed"):
        session.call("manage_collections", action="delete", collection_name="doomed")
    assert stored_hashes(session, "doomed") == {}
    session.answer = True
    session.result("manage_collections", action="delete", collection_name="doomed")
    with pytest.raises(MCPError, match="Collection not found"):
        stored_hashes(session, "doomed")
    assert session.asked[-1] == "Delete the collection 'doomed' and everything in it?"


def test_removal_requires_confirmation(session: Editor) -> None:
    session.result("manage_collections", action="create", collection_name="kept")
    for name in ("a", "b"):
        session.result("augment_knowledge", content="Roses like sun.", source=name, collection="kept")
    removal = {"collection_name": "kept", "path": "a"}
    session.answer = False
    with pytest.raises(MCPError, match="the removal was not confirmed"):
        session.call("remove_document", **removal)
    session.answer = True
    assert session.result("remove_document", **removal)["path"] == "a"
    assert session.asked[-1] == "Remove the document 'a' from the collection 'kept'?"
    listed = session.result("list_documents", collection_name="kept")["documents"]
    assert [each["path"] for each in listed] == ["b"]
    with pytest.raises(MCPError, match="has no document: a"):
        session.call("remove_document", **removal)
