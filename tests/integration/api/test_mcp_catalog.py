"""The MCP catalog in each revision, from the gateway's event to the methods."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from api.mcp_server import server_for_catalog
from api.mcp_transport import McpRequestContext, McpTransport
from shared.rpc.caller import Caller
from shared.rpc.mcp_catalog import TOOLSETS, McpCatalog, McpPrompt, McpToolEntry, mcp_catalog
from shared.rpc.strict_json import compact
from tests.helpers.mcp_events import (
    HANDSHAKE,
    MODERN,
    REVISIONS,
    answer_of_server,
    in_process_mcp_server,
    request_event,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from shared.rpc.caller import Role


@pytest.fixture(scope="module")
def transport(store: str) -> Iterator[McpTransport]:
    """Yield the endpoint's transport, with its methods in this process."""
    with in_process_mcp_server() as made:
        yield made


@pytest.fixture
def ask(transport: McpTransport, tenant: str) -> Callable[..., Any]:
    """Return a caller of a new tenant. `roles` limits its roles."""

    def ask(method: str, revision: str = MODERN, roles: tuple[Role, ...] = ("admin",), **params: Any) -> Any:
        visit = McpRequestContext(Caller("tester", frozenset(roles), tenant), "integration-test")
        return answer_of_server(transport, request_event(method, revision, **params), visit)

    return ask


def call(ask: Callable[..., Any], tool: str, revision: str = MODERN, **arguments: Any) -> Any:
    return ask("tools/call", revision, name=tool, arguments=arguments)


def test_newest_revision_server_discover(ask: Callable[..., Any]) -> None:
    assert ask("server/discover")["result"]["supportedVersions"] == list(REVISIONS)


@pytest.mark.parametrize("revision", REVISIONS)
def test_tools_have_schemas_and_descriptions(ask: Callable[..., Any], revision: str) -> None:
    listed = ask("tools/list", revision)["result"]["tools"]
    assert {each["name"] for each in listed} == {each.name for each in mcp_catalog().tools}
    for tool in listed:
        assert tool["title"]
        assert len(tool["description"]) <= 400
        assert tool["inputSchema"]["type"] == "object"
        assert "$ref" not in json.dumps(tool)
        assert len(tool["annotations"]) == 4


MOST_TOOLS = 46
MOST_BYTES = {"": 44_000, "documents": 15_000}
MOST_BYTES_OF_A_TOOLSET = 12_000
TO_COME = {
    "memory": {"memory_search": 1_600},
    "knowledge": {"list_documents": 700, "remove_document": 600},
    "experiences": {"list_experiences": 600},
    "devices": {"devices_call_many": 1_000},
}
"""Tools that have room kept for them, in bytes, until they exist. There is room for no others."""


@pytest.mark.parametrize("toolset", ["", *TOOLSETS])
def test_definitions_are_short(toolset: str, tenant: str) -> None:
    catalog = mcp_catalog().of(*TOOLSETS[toolset].methods) if toolset else mcp_catalog()
    transport = McpTransport(server_for_catalog(catalog))
    visit = McpRequestContext(Caller("tester", frozenset({"admin"}), tenant), "integration-test")
    listed = answer_of_server(transport, request_event("tools/list", MODERN), visit)["result"]
    transport.close()
    assert len(listed["tools"]) == len(catalog.tools)
    kept = {name: size for each in ([toolset] if toolset else TOOLSETS) for name, size in TO_COME.get(each, {}).items()}
    for name in catalog_names(catalog) & kept.keys():
        del kept[name]
    assert len(listed["tools"]) + len(kept) <= MOST_TOOLS
    size = len(compact({"tools": listed["tools"]}).encode("utf-8"))
    assert size + sum(kept.values()) <= MOST_BYTES.get(toolset, MOST_BYTES_OF_A_TOOLSET)


def catalog_names(catalog: McpCatalog) -> set[str]:
    return {each.name for each in catalog.tools}


def test_each_tool_is_in_one_toolset() -> None:
    names = [tool.name for each in TOOLSETS.values() for tool in mcp_catalog().of(*each.methods).tools]
    assert sorted(names) == sorted(each.name for each in mcp_catalog().tools)


def test_reading_tools_have_read_only_hint(ask: Callable[..., Any]) -> None:
    hints = {each["name"]: each["annotations"] for each in ask("tools/list")["result"]["tools"]}
    assert hints["memory_get_context"]["readOnlyHint"]
    assert not hints["memory_add_message"]["readOnlyHint"]
    assert not hints["memory_add_message"]["idempotentHint"]
    assert hints["memory_delete"]["destructiveHint"]
    assert hints["memory_delete"]["idempotentHint"]
    assert hints["duckduckgo_search"]["openWorldHint"]


@pytest.mark.parametrize("revision", REVISIONS)
def test_call_returns_structured_content_and_equal_text(ask: Callable[..., Any], revision: str) -> None:
    call(ask, "memory_add_message", revision, conversation_id="c", role="user", content="răng 牙 \x00")
    result = call(ask, "memory_get_context", revision, conversation_id="c")["result"]
    assert result["structuredContent"] == {"messages": [{"role": "user", "content": "răng 牙 \x00"}]}
    assert [json.loads(each["text"]) for each in result["content"]] == [result["structuredContent"]]
    assert not result.get("isError")


def test_tool_name_matches_the_contract(ask: Callable[..., Any]) -> None:
    created = call(ask, "memory/get_or_create", conversation_id="c")["result"]["structuredContent"]
    assert created == {"conversation_id": "c"}


@pytest.mark.parametrize(
    ("tool", "arguments", "code", "name"),
    [
        ("memory_get_context", {"conversation_id": "nowhere"}, -32001, "NOT_FOUND"),
        ("memory_get_context", {"conversation_id": "a b"}, -32602, "INVALID_PARAMS"),
        ("memory_get_context", {}, -32602, "INVALID_PARAMS"),
        ("memory_get_context", {"conversation_id": "c", "surprise": 1}, -32602, "INVALID_PARAMS"),
        ("duckduckgo_search", {"query": "x"}, -32002, "TOOL_FAILED"),
        ("get_document", {"document_id": "nowhere"}, 404, "NOT_FOUND"),
    ],
)
def test_tool_failure_is_a_result_in_every_revision(
    ask: Callable[..., Any], tool: str, arguments: dict[str, Any], code: int, name: str
) -> None:
    """Its text has the code, what is wrong with which field, and what to do."""
    texts = set()
    for revision in REVISIONS:
        result = call(ask, tool, revision, **arguments)["result"]
        facts, (content,) = result["structuredContent"], result["content"]
        assert result["isError"]
        assert (facts["code"], facts["number"]) == (name, code)
        assert facts.keys() == {"code", "number", "message", "details", "guidance"}
        assert content["text"].startswith(f"{name}: {facts['message']}")
        assert content["text"].endswith(f". {facts['guidance']}")
        for problem in facts["details"] if name == "INVALID_PARAMS" else ():
            assert f"{problem['field']}: {problem['message']}" in content["text"]
        texts.add(content["text"])
    assert len(texts) == 1


def test_guidance_names_tools_as_clients_know_them(ask: Callable[..., Any]) -> None:
    unknown = call(ask, "memory_get_context", conversation_id="nowhere")["result"]["structuredContent"]
    assert unknown["guidance"] == "memory_get_or_create and memory_add_message create a conversation."
    resource = ask("resources/read", uri="memory://conversation/nowhere")["error"]
    assert "memory_get_or_create and" in resource["message"]
    device = call(ask, "devices_get", device_id="nowhere")["result"]["content"][0]["text"]
    assert "devices_list" in device


def test_protocol_error_says_everything_in_its_message(ask: Callable[..., Any]) -> None:
    error = ask("tools/call", HANDSHAKE[0], name="no_such_tool")["error"]
    assert error["message"].startswith("Invalid params: name: 'no_such_tool' is not a tool; tools/list names them. ")
    unknown = ask("no/method", HANDSHAKE[0])["error"]
    assert unknown["message"].endswith(unknown["data"]["guidance"])


@pytest.mark.parametrize("revision", REVISIONS)
def test_unlisted_tools_and_resources(ask: Callable[..., Any], revision: str) -> None:
    for method, params in (
        ("tools/call", {"name": "no_such_tool"}),
        ("prompts/get", {"name": "no_such_prompt"}),
        ("tools/list", {"cursor": "x"}),
        ("resources/list", {"cursor": "x"}),
    ):
        error = ask(method, revision, **params)["error"]
        assert (error["code"], error["data"]["code"]) == (-32602, "INVALID_PARAMS")


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(
    "uri",
    ["memory://conversation/nowhere", "other://x", "agent-data://document/nowhere", "memory://conversation/a%20b"],
)
def test_unknown_resource(ask: Callable[..., Any], revision: str, uri: str) -> None:
    error = ask("resources/read", revision, uri=uri)["error"]
    assert error["data"]["uri"] == uri
    assert error["data"]["code"] == "NOT_FOUND"
    if revision == MODERN:
        assert error["code"] == -32602
    else:
        assert error["code"] == (-32001 if uri.startswith("memory:") else 404)


def test_resources_are_paged_and_read(ask: Callable[..., Any]) -> None:
    for number in range(130):
        call(ask, "memory_get_or_create", conversation_id=f"chat/{number:03}")
    uris: list[str] = []
    page = ask("resources/list")["result"]
    while True:
        uris += [each["uri"] for each in page["resources"]]
        if "nextCursor" not in page:
            break
        page = ask("resources/list", cursor=page["nextCursor"])["result"]
    assert len(set(uris)) == len(uris)
    conversations = [uri for uri in uris if uri.startswith("memory://conversation/")]
    assert len(conversations) == 130
    contents = ask("resources/read", uri=conversations[0])["result"]["contents"]
    assert json.loads(contents[0]["text"]) == {"messages": [], "summary": {}}
    templates = [each["uriTemplate"] for each in ask("resources/templates/list")["result"]["resourceTemplates"]]
    assert "memory://conversation/{conversation_id}" in templates


def test_a_document_is_a_resource(ask: Callable[..., Any]) -> None:
    content = {"body": "# Xin chào"}
    call(ask, "create_document", document_id="doc-1", parent_id="root", content=content)
    contents = ask("resources/read", uri="agent-data://document/doc-1")["result"]["contents"]
    assert json.loads(contents[0]["text"])["content"]["body"] == "# Xin chào"


@pytest.mark.parametrize("revision", REVISIONS)
def test_ids_are_completed(ask: Callable[..., Any], revision: str) -> None:
    for name in ("alpha", "alpine", "beta", "al/pha"):
        call(ask, "memory_get_or_create", conversation_id=name)
    for ref in (
        {"type": "ref/resource", "uri": "memory://conversation/{conversation_id}"},
        {"type": "ref/prompt", "name": "summarize_conversation"},
    ):
        argument = {"name": "conversation_id", "value": "al"}
        completion = ask("completion/complete", revision, ref=ref, argument=argument)["result"]["completion"]
        assert completion == {"values": ["al/pha", "alpha", "alpine"], "hasMore": False}
        argument = {"name": "language", "value": ""}
        assert not ask("completion/complete", revision, ref=ref, argument=argument)["result"]["completion"]["values"]


@pytest.mark.parametrize("revision", REVISIONS)
def test_prompt_embeds_its_resource(ask: Callable[..., Any], revision: str) -> None:
    call(ask, "memory_add_message", conversation_id="c/1", role="user", content="{language}")
    arguments = {"conversation_id": "c/1", "language": "en"}
    messages = ask("prompts/get", revision, name="summarize_conversation", arguments=arguments)["result"]["messages"]
    assert "the code 'en'" in messages[0]["content"]["text"]
    assert "{" not in messages[0]["content"]["text"]
    assert messages[1]["content"]["resource"]["uri"] == "memory://conversation/c%2F1"
    assert "{language}" in messages[1]["content"]["resource"]["text"]
    for wrong in ({}, {"conversation_id": "c/1", "surprise": "x"}):
        error = ask("prompts/get", revision, name="summarize_conversation", arguments=wrong)["error"]
        assert error["code"] == -32602


def test_catalog_depends_on_role(ask: Callable[..., Any]) -> None:
    offered = {role: {each["name"] for each in ask("tools/list", roles=(role,))["result"]["tools"]} for role in
               ("reader", "writer", "admin")}  # fmt: skip
    assert offered["reader"] == {each.name for each in mcp_catalog().tools if each.role == "reader" or each.anonymous}
    assert offered["reader"] < offered["writer"] <= offered["admin"]
    refused = ask("tools/call", roles=("reader",), name="memory_clear", arguments={"conversation_id": "c"})
    assert refused["result"]["structuredContent"]["code"] == "NOT_ALLOWED"
    refused = ask("tools/call", HANDSHAKE[0], ("reader",), name="memory_clear", arguments={"conversation_id": "c"})
    assert refused["result"]["structuredContent"]["number"] == 403


def test_large_result_is_sent_only_as_text(ask: Callable[..., Any], transport: McpTransport) -> None:
    for _ in range(16):
        call(ask, "memory_add_message", conversation_id="long", role="user", content="ờ" * (256 * 1024 // 3))
    result = call(ask, "memory_get_all_messages", conversation_id="long", limit=12)["result"]
    assert len(result["structuredContent"]["messages"]) == 12
    assert result["content"][0]["text"] == "The result is in structuredContent alone: it is too long to send twice."
    everything = call(ask, "memory_get_all_messages", conversation_id="long")["result"]
    assert len(everything["structuredContent"]["messages"]) == 16


def test_new_servers_need_no_endpoint_change(transport: McpTransport, ask: Callable[..., Any]) -> None:
    """The endpoint needs only a method's name, schema and text."""
    described = {"name": "remember", "title": "Remember", "description": "…", "inputSchema": {"type": "object"}}
    tool = McpToolEntry(described, "memory-server/memory/get_or_create", "writer")
    prompt = McpPrompt("hello", "Hello", "Greets.", "Say hello.")
    made = McpTransport(server_for_catalog(McpCatalog([tool], [], [prompt])))
    visit = McpRequestContext(Caller("tester", frozenset({"writer"}), "to-come"), "integration-test")
    listed = answer_of_server(made, request_event("tools/list", MODERN), visit)["result"]["tools"]
    assert listed == [described]
    arguments = {"conversation_id": "x"}
    called = answer_of_server(made, request_event("tools/call", MODERN, name="remember", arguments=arguments), visit)[
        "result"
    ]
    assert called["structuredContent"] == arguments
    assert answer_of_server(made, request_event("resources/list", MODERN), visit)["result"]["resources"] == []
    greeted = answer_of_server(made, request_event("prompts/get", MODERN, name="hello"), visit)["result"]["messages"]
    assert greeted == [{"role": "user", "content": {"type": "text", "text": "Say hello."}}]
    made.close()
