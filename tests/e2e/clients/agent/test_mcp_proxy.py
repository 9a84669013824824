"""`kho mcp`: the MCP endpoints of a server over STDIO."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from fastmcp import Client
from mcp.shared.exceptions import MCPError

from infra.local.data_folder import lock_folder
from shared.rpc.mcp_catalog import TOOLSETS, mcp_catalog
from tests.helpers.api_client import make_key
from tests.helpers.editor_folder import write_files
from tests.helpers.mcp_editor import Editor, editor
from tests.helpers.mcp_events import MODERN
from tests.helpers.program import KHO, run
from tests.helpers.wait import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.helpers.kho_server import KhoServer


@pytest.fixture(scope="module", params=["legacy", MODERN])
def everything(
    request: pytest.FixtureRequest, server: KhoServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Editor]:
    """Yield a client of all toolsets on the data of a running server, in each kind of revision."""
    folder = tmp_path_factory.mktemp("proxy") / "work"
    write_files(folder, {f"notes/{number}.md": f"# Note {number}\n\nFerns are watered.\n" for number in range(3)})
    with editor(folder, server.data, program=KHO, mode=request.param) as running:
        yield running


async def _at_endpoint(address: str, mode: str, call: str, *arguments: Any) -> Any:
    async with Client(address, mode=mode) as client:
        return await getattr(client, call)(*arguments)


def test_tools_are_those_of_the_mcp_endpoint(everything: Editor, server: KhoServer) -> None:
    there = everything.portal.call(_at_endpoint, f"{server.address}/mcp", MODERN, "list_tools")
    here = everything.tools()
    assert list(here) == [tool.name for tool in there]
    for tool in there:
        ours, theirs = (each.model_dump() for each in (here[tool.name], tool))
        if tool.name == "ingest_documents":  # it reads this machine's files
            assert set(ours.pop("input_schema")["properties"]) == {"path", "collection", "recursive"}
            theirs.pop("input_schema")
        assert ours == theirs


def test_call_resource_and_prompt(everything: Editor) -> None:
    id_ = f"proxy-{everything.mode}"
    everything.result("memory_add_message", conversation_id=id_, role="user", content="xin chào \u7259")
    assert everything.read(f"memory://conversation/{id_}")["messages"][-1]["content"] == "xin chào \u7259"
    assert everything.prompt("summarize_conversation", conversation_id=id_)


def outcome(call: Callable[..., Any], *arguments: Any) -> Any:
    """Return a failure as the client sees it."""
    try:
        result = call(*arguments)
    except MCPError as error:
        return error.code, error.message, error.data
    return result.is_error, result.structured_content, result.content[0].text


async def call_at(address: str, mode: str, tool: str, arguments: dict[str, Any]) -> Any:
    async with Client(address, mode=mode) as client:
        return await client.call_tool(tool, arguments, raise_on_error=False)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("memory_get_context", {"conversation_id": "nowhere"}),
        ("memory_get_context", {"surprise": 1}),
        ("no_such_tool", {}),
        ("device_tools_call", {"device_id": "nowhere", "name": "x"}),
        ("get_experience", {"id": "nowhere"}),
    ],
)
def test_errors_are_those_of_the_mcp_endpoint(
    everything: Editor, server: KhoServer, tool: str, arguments: dict[str, Any]
) -> None:
    address = f"{server.address}/mcp"
    there = outcome(everything.portal.call, call_at, address, everything.mode, tool, arguments)
    assert outcome(lambda: everything.call(tool, **arguments)) == there


def test_failure_of_a_tool_that_runs_here_is_a_result(everything: Editor) -> None:
    failed = everything.call("ingest_documents", path="notes", collection="none")
    assert failed.is_error
    assert failed.structured_content.keys() == {"code", "number", "message", "details", "guidance"}
    assert failed.content[0].text.startswith("COLLECTION_NOT_FOUND: Collection not found: none. ")


@pytest.mark.parametrize("mode", ["legacy", MODERN])
def test_unreachable_server_is_a_result_of_the_call(tmp_path: Path, mode: str) -> None:
    with editor(tmp_path, tmp_path, "--endpoint", "http://127.0.0.1:9", program=KHO, mode=mode) as lonely:
        failed = lonely.call("memory_get_context", conversation_id="c")
        assert failed.is_error
        assert failed.content[0].text.startswith("UNAVAILABLE: The server does not answer. Check that http://127")


def test_files_of_this_machine_with_progress_and_confirmation(everything: Editor) -> None:
    name = f"proxy-{everything.mode}"
    everything.result("manage_collections", action="create", collection_name=name)
    assert everything.result("ingest_documents", path="notes", collection=name)["added"] == 3
    assert everything.progress[-1:] == [(3, 3)]
    assert everything.result("query_knowledge_base", query="ferns", collections=name)["results"]
    everything.answer = False
    refused = outcome(lambda: everything.call("manage_collections", action="delete", collection_name=name))
    assert "was not deleted: the deletion was not confirmed" in str(refused)
    everything.answer = True
    everything.result("manage_collections", action="delete", collection_name=name)
    assert everything.asked[-2:] == [f"Delete the collection '{name}' and everything in it?"] * 2


def test_session_goes_on_after_a_cancelled_call(everything: Editor) -> None:
    name = f"cancelled-{everything.mode}"
    everything.result("manage_collections", action="create", collection_name=name)
    everything.call_and_cancel("ingest_documents", after=1, path="notes", collection=name)
    assert everything.result("ingest_documents", path="notes", collection=name)["failed"] == []


def test_lists_are_answered_while_the_server_starts(tmp_path: Path) -> None:
    """A session answers its lists from the catalog at once. They start the server, which then answers calls."""
    folder, data = tmp_path / "work", tmp_path / "data"
    folder.mkdir()
    with editor(folder, data, program=KHO) as running:
        with lock_folder(data):  # no server can start now
            tools = running.tools()
            assert list(tools) == [each.name for each in mcp_catalog().tools]
            assert set(tools["ingest_documents"].input_schema["properties"]) == {"path", "collection", "recursive"}
            assert set(running.prompts()) == {each.name for each in mcp_catalog().prompts}
            assert running.templates() == [each.uri for each in mcp_catalog().resources if each.is_template]
        until((data / "serving.json").exists)
        assert running.result("memory_add_message", conversation_id="c", role="user", content="xin chào")
        assert running.tools() == tools


def test_one_toolset(server: KhoServer, tmp_path: Path) -> None:
    with editor(tmp_path, server.data, "--toolset", "devices", program=KHO) as running:
        assert set(running.tools()) == {each.name for each in mcp_catalog().of(*TOOLSETS["devices"].methods).tools}


def test_endpoint_with_a_key(guarded: KhoServer, tmp_path: Path) -> None:
    key = make_key(guarded.data, "proxy", "reader")["key"]
    with editor(tmp_path, tmp_path, "--endpoint", guarded.address, program=KHO, KHO_KEY=key) as running:
        allowed = {each.name for each in mcp_catalog().tools if each.role == "reader" or each.anonymous}
        assert set(running.tools()) == allowed
    with (
        editor(tmp_path, tmp_path, "--endpoint", guarded.address, program=KHO, KHO_KEY="kho_wrong") as running,
        pytest.raises(MCPError, match="rejected the key") as refused,
    ):
        running.tools()
    assert "KHO_KEY" in refused.value.data["guidance"]


def test_unknown_toolset_is_refused_by_name(tmp_path: Path) -> None:
    done = run(KHO, "mcp", "--toolset", "everything", cwd=tmp_path)
    assert done.returncode
    assert all(name in done.stdout + done.stderr for name in TOOLSETS)
