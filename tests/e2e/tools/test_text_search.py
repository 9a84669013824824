"""The search toolset: `search` and `fetch` over documents and knowledge, in the form that ChatGPT expects."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from mcp.client import Client as SdkClient

from tests.helpers.wait import until

if TYPE_CHECKING:
    from tests.helpers.kho_server import KhoServer

FERNS = "# Ferns\n\nFerns are watered every morning, and like shade.\n"
CACTUS = "# Cactus\n\nA cactus is watered once a month.\n"
SOURCE = "https://plants.example/cactus"


@pytest.fixture(scope="module")
def library(server: KhoServer) -> KhoServer:
    """Return the server with a document and a text of a collection about plants."""
    document = {"document_id": "search-ferns", "parent_id": "root", "content": {"body": FERNS},
                "metadata": {"title": "Watering ferns"}}  # fmt: skip
    server.call("agent-data/create_document", **document)
    server.call("research-agent/manage_collections", action="create", collection_name="search/plants")
    text = {"content": CACTUS, "source": SOURCE, "collection": "search/plants"}
    server.call("research-agent/augment_knowledge", **text)
    until(lambda: {"document:search-ferns"} <= found(server, "How often are ferns watered?"))
    return server


def found(server: KhoServer, query: str) -> set[str]:
    return {each["id"] for each in server.call("tool-server/search", query=query)["results"]}


def call(server: KhoServer, tool: str, *, endpoint: str = "/mcp/search", **arguments: Any) -> Any:
    async def use() -> Any:
        async with SdkClient(f"{server.address}{endpoint}") as client:
            return await client.call_tool(tool, arguments)

    return asyncio.run(use())


def test_search_and_fetch_have_the_shapes_that_chatgpt_expects(library: KhoServer) -> None:
    searched = call(library, "search", query="How often is each plant watered?")
    assert [json.loads(each.text) for each in searched.content] == [searched.structured_content]
    results = searched.structured_content["results"]
    assert all(set(each) == {"id", "title", "url"} and all(each.values()) for each in results)
    known = {each["id"]: each for each in results}
    for id_, title, text in (
        ("document:search-ferns", "Watering ferns", FERNS),
        (f"knowledge:search/plants#{SOURCE}", "Cactus", CACTUS),
    ):
        assert known[id_]["title"] == title
        fetched = call(library, "fetch", id=id_)
        assert [json.loads(each.text) for each in fetched.content] == [fetched.structured_content]
        whole = fetched.structured_content
        assert set(whole) == {"id", "title", "text", "url", "metadata"}
        assert (whole["id"], whole["title"], whole["text"]) == (id_, title, text)
        assert whole["url"] == known[id_]["url"]
        assert all(isinstance(each, str) for each in whole["metadata"].values())
    assert known[f"knowledge:search/plants#{SOURCE}"]["url"] == SOURCE


def test_search_crosses_languages_and_ranks_the_best_first(library: KhoServer) -> None:
    for query in ("蕨类植物怎么浇水?", "How are ferns watered?"):
        assert library.call("tool-server/search", query=query)["results"][0]["id"] == "document:search-ferns"


def test_nothing_relevant_is_an_empty_list(library: KhoServer) -> None:
    assert library.call("tool-server/search", query="quarterly tax rate of Liechtenstein")["results"] == []


def test_deleted_documents_are_neither_found_nor_read(library: KhoServer) -> None:
    content = {"body": "Mosses are watered with a spray bottle."}
    library.call("agent-data/create_document", document_id="search-moss", parent_id="root", content=content)
    until(lambda: "document:search-moss" in found(library, "How are mosses watered?"))
    library.call("agent-data/delete_document", document_id="search-moss")
    assert "document:search-moss" not in found(library, "How are mosses watered?")
    fetched = call(library, "fetch", id="document:search-moss")
    assert fetched.is_error
    assert fetched.structured_content["code"] == "NOT_FOUND"


@pytest.mark.parametrize("id_", ["search-ferns", "document:", "knowledge:search/plants", "knowledge:none#a", "x" * 99])
def test_unknown_id_is_not_found(library: KhoServer, id_: str) -> None:
    fetched = call(library, "fetch", id=id_)
    assert fetched.structured_content["code"] == "NOT_FOUND"
    assert fetched.structured_content["details"] == {"id": id_}
    assert "search" in fetched.structured_content["guidance"]


def test_messages_are_found_only_where_they_are_asked_for(library: KhoServer) -> None:
    """Never by the toolset of documents, whichever arguments it gets."""
    for text in ("When do we repot the orchid?", "Repot the orchid in March, after it has flowered."):
        library.call("memory-server/memory/add_message", conversation_id="orchids", role="user", content=text)
    question = "When is the orchid repotted?"
    assert not [id_ for id_ in found(library, question) if id_.startswith("message:")]
    results = library.call("tool-server/search", query=question, include_messages=True)["results"]
    [message, *_] = [each for each in results if each["title"].startswith("user: Repot the orchid")]
    assert message["id"].startswith("message:orchids#msg_")
    whole = library.call("tool-server/fetch", id=message["id"], include_messages=True)
    assert (
        whole["text"] == "user: When do we repot the orchid?\n\nuser: Repot the orchid in March, after it has flowered."
    )
    assert whole["metadata"]["conversation_id"] == "orchids"
    assert library.error("tool-server/fetch", id=message["id"])["data"]["code"] == "NOT_FOUND"
    for tool, arguments in (("search", {"query": question}), ("fetch", {"id": message["id"]})):
        refused = call(library, tool, **arguments, include_messages=True)
        assert refused.is_error
        assert "include_messages" in refused.content[0].text
    everything = call(library, "search", query=question, include_messages=True, endpoint="/mcp")
    assert message["id"] in json.dumps(everything.structured_content)
