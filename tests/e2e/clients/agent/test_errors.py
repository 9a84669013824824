"""Errors that an editor receives, with the contract's codes and with guidance."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from mcp.shared.exceptions import MCPError

from tests.helpers.mcp_editor import Editor, editor

if TYPE_CHECKING:
    from pathlib import Path


REFUSALS: list[tuple[int, str, str, dict[str, Any]]] = [
    (-32001, "CONFIGURATION_NO_PROJECT", "manage_projects", {"action": "info", "project_name": "none"}),
    (-32001, "CONFIGURATION_PARAMETER_MISSING", "manage_projects", {"action": "create"}),
    (-32001, "CONFIGURATION_PARAMETER_MISSING", "manage_projects", {"action": "link", "project_name": "garden"}),
    (-32001, "CONFIGURATION_PROJECT_EXISTS", "manage_projects", {"action": "create", "project_name": "garden"}),
    (
        -32001,
        "CONFIGURATION_NOT_LINKED",
        "manage_projects",
        {"action": "set-defaults", "project_name": "garden", "collections": "notes"},
    ),
    (-32002, "COLLECTION_NOT_FOUND", "query_knowledge_base", {"query": "x", "collections": "none"}),
    (-32002, "COLLECTION_EXISTS", "manage_collections", {"action": "create", "collection_name": "notes"}),
    (-32002, "COLLECTION_PARAMETER_MISSING", "manage_collections", {"action": "info"}),
    (-32002, "COLLECTION_NOT_FOUND", "manage_collections", {"action": "delete", "collection_name": "none"}),
    (-32002, "COLLECTION_NOT_FOUND", "ingest_documents", {"path": "docs", "collection": "none"}),
    (-32002, "COLLECTION_NOT_FOUND", "augment_knowledge", {"content": "x", "source": "x", "collection": "none"}),
    (
        -32002,
        "COLLECTION_NOT_FOUND",
        "manage_projects",
        {"action": "link", "project_name": "garden", "collections": "none"},
    ),
    (-32003, "DOCUMENT_NOT_FOUND", "ingest_documents", {"path": "none.md", "collection": "notes"}),
    (-32003, "DOCUMENT_PATH_FORBIDDEN", "ingest_documents", {"path": "..", "collection": "notes"}),
    (-32003, "DOCUMENT_UNREADABLE", "ingest_documents", {"path": "docs/picture.png", "collection": "notes"}),
    (-32003, "DOCUMENT_UNREADABLE", "augment_knowledge", {"content": " ", "source": "x", "collection": "notes"}),
    (
        -32003,
        "DOCUMENT_TOO_LARGE",
        "augment_knowledge",
        {"content": "x" * ((4 << 20) + 1), "source": "x", "collection": "notes"},
    ),
    (-32004, "QUERY_INVALID", "query_knowledge_base", {"query": ""}),
    (-32004, "QUERY_INVALID", "query_knowledge_base", {"query": " \n"}),
    (-32004, "QUERY_INVALID", "query_knowledge_base", {"query": "x" * 2049}),
    (-32602, "INVALID_PARAMS", "query_knowledge_base", {}),
    (-32602, "INVALID_PARAMS", "query_knowledge_base", {"query": 7}),
    (-32602, "INVALID_PARAMS", "query_knowledge_base", {"query": "x", "top_k": 0}),
    (-32602, "INVALID_PARAMS", "manage_collections", {"action": "rename"}),
    (-32602, "INVALID_PARAMS", "manage_collections", {"action": "create", "collection_name": "a, b"}),
    (-32602, "INVALID_PARAMS", "manage_collections", {"action": "list", "unknown": 1}),
]


@pytest.fixture(scope="module")
def garden(session: Editor, notes: str) -> str:
    """Return a project without linked collections."""
    project = session.result("manage_projects", action="create", project_name="garden")
    assert notes not in project["project"]["collections"]
    return "garden"


@pytest.mark.parametrize(("code", "name", "tool", "arguments"), REFUSALS)
def test_errors_have_codes_and_guidance(  # noqa: PLR0917 - a row of the table each
    session: Editor, garden: str, code: int, name: str, tool: str, arguments: dict[str, Any]
) -> None:
    with pytest.raises(MCPError) as refused:
        session.call(tool, **arguments)
    assert refused.value.error.code == code
    assert refused.value.error.data["code"] == name
    message, details, guidance = (
        refused.value.error.message,
        refused.value.error.data["details"],
        refused.value.error.data["guidance"],
    )
    assert guidance
    assert message.endswith(f" {guidance}")
    for problem in details if isinstance(details, list) else ():
        assert problem["field"] in message.lower()
    assert "Traceback" not in json.dumps(refused.value.error.data)


REQUESTS: list[tuple[str, dict[str, Any], int, int, str]] = [
    ("resources/read", {"uri": "knowledge://collections/nope"}, -32002, -32602, "COLLECTION_NOT_FOUND"),
    ("resources/read", {"uri": "knowledge://nope"}, 404, -32602, "NOT_FOUND"),
    ("prompts/get", {"name": "refine_query"}, -32602, -32602, "INVALID_PARAMS"),
    ("prompts/get", {"name": "extract_context", "arguments": {}}, -32602, -32602, "INVALID_PARAMS"),
    ("prompts/get", {"name": "nope"}, -32602, -32602, "INVALID_PARAMS"),
    ("tools/call", {"name": "nope", "arguments": {}}, -32602, -32602, "INVALID_PARAMS"),
]


def refused_request(session: Editor, method: str, params: dict[str, Any]) -> Any:
    """Return the error of a request."""
    client = session.client
    assert client
    calls = {
        "resources/read": lambda: session.portal.call(client.read_resource, params["uri"]),
        "prompts/get": lambda: session.portal.call(client.get_prompt, params["name"], params.get("arguments", {})),
        "tools/call": lambda: session.call(params["name"]),
    }
    with pytest.raises(MCPError) as refused:
        calls[method]()
    return refused.value.error


def test_resources_prompts_and_unknown_tools_keep_code_and_guidance(session: Editor) -> None:
    for method, params, code, _, name in REQUESTS:
        error = refused_request(session, method, params)
        assert (error.code, error.data["code"]) == (code, name)
        assert error.data["guidance"]
        if "uri" in params:
            assert error.data["uri"] == error.data["details"]["uri"] == params["uri"]
        else:
            assert error.data["details"][0]["message"]


def test_the_newest_revision_keeps_data_of_resources_and_prompts(folder: Path, data: Path) -> None:
    with editor(folder, data, mode="auto") as newest:
        for method, params, _, code, name in REQUESTS:
            error = refused_request(newest, method, params)
            assert (error.code, error.data["code"]) == (code, name)
            assert error.data["guidance"]


def test_errors_of_a_user_are_no_tracebacks_in_the_log(session: Editor, folder: Path) -> None:
    for method, params, *_ in REQUESTS:
        refused_request(session, method, params)
    assert "Traceback" not in (folder.parent / "mcp.log").read_text()


def test_unresponsive_backend(folder: Path, data: Path) -> None:
    with (
        editor(folder, data, "--endpoint", "http://127.0.0.1:9") as lonely,
        pytest.raises(MCPError) as refused,
    ):
        lonely.call("query_knowledge_base", query="x")
    assert refused.value.error.code == -32000
    assert refused.value.error.data["guidance"]


def test_newest_revision_returns_codes_in_results(folder: Path, data: Path, notes: str) -> None:
    with editor(folder, data, mode="auto") as newest:
        assert newest.client
        assert newest.client.protocol_version == "2026-07-28"
        answer = newest.call("query_knowledge_base", query="x", collections="none")
        assert answer.is_error
        assert answer.structured_content["code"] == "COLLECTION_NOT_FOUND"
        assert answer.structured_content["number"] == -32002
        assert answer.structured_content["guidance"] in answer.content[0].text
        newest.result("manage_collections", action="create", collection_name="brief")
        newest.answer = False
        assert newest.call("manage_collections", action="delete", collection_name="brief").is_error
        newest.answer = True
        newest.result("manage_collections", action="delete", collection_name="brief")
        assert newest.asked == ["Delete the collection 'brief' and everything in it?"] * 2
