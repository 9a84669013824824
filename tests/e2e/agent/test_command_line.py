"""The command line answers and rejects as the tools do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from mcp.shared.exceptions import MCPError

from tests.helpers.mcp_editor import Editor, run_research_agent

if TYPE_CHECKING:
    from pathlib import Path


def test_command_line_returns_the_tools_results(session: Editor, notes: str, folder: Path, data: Path) -> None:
    into = ("--collection", notes)
    params = {"query": "how much water does a cactus need?", "collections": notes, "top_k": 2}
    code, answered = run_research_agent(
        folder, data, "query", str(params["query"]), "--collections", notes, "--top-k", "2"
    )
    assert (code, answered) == (0, session.result("query_knowledge_base", **params))
    code, answered = run_research_agent(folder, data, "collections", "info", notes)
    assert (code, answered) == (0, session.result("manage_collections", action="info", collection_name=notes))
    code, answered = run_research_agent(folder, data, "kb", "add-folder", "docs", *into, "--recursive")
    assert code == 7
    assert answered == session.result("ingest_documents", path="docs", collection=notes, recursive=True)
    assert (answered["unchanged"], answered["added"], len(answered["failed"])) == (3, 0, 1)
    code, answered = run_research_agent(folder, data, "collections", "list")
    assert (code, answered) == (0, session.result("manage_collections", action="list"))
    text = {"content": "Roses are pruned in March.", "source": "roses", "title": "Roses"}
    added = run_research_agent(
        folder, data, "kb", "add-text", text["content"], "--source", "roses", "--title", "Roses", *into
    )
    assert added == (
        0,
        {**session.result("augment_knowledge", **text, collection=notes), "added": 1, "unchanged": 0}
        | {"message": "Documents: 1 added."},
    )


PROJECTS: list[tuple[tuple[str, ...], dict[str, str]]] = [
    (("create", "yard"), {"action": "create", "project_name": "yard"}),
    (("link", "yard", "--collections", "notes"), {"action": "link", "project_name": "yard", "collections": "notes"}),
    (
        ("set-defaults", "yard", "--collections", "notes"),
        {"action": "set-defaults", "project_name": "yard", "collections": "notes"},
    ),
    (("info", "yard"), {"action": "info", "project_name": "yard"}),
    (("list",), {"action": "list"}),
    (
        ("unlink", "yard", "--collections", "notes"),
        {"action": "unlink", "project_name": "yard", "collections": "notes"},
    ),
]


def test_command_line_and_editor_share_projects(session: Editor, notes: str, folder: Path, data: Path) -> None:
    for command, params in PROJECTS:
        code, answered = run_research_agent(folder, data, "projects", *command)
        assert code == 0
        if params["action"] == "create":
            continue  # once only
        result = session.result("manage_projects", **params)
        for each in (answered, result):
            each.get("project", {}).pop("updated_at", None)
        assert answered == result


REFUSED: list[tuple[int, tuple[str, ...], str, dict[str, str]]] = [
    (3, ("projects", "info", "none"), "manage_projects", {"action": "info", "project_name": "none"}),
    (4, ("query", "x", "--collections", "none"), "query_knowledge_base", {"query": "x", "collections": "none"}),
    (
        5,
        ("kb", "add-document", "../secret", "--collection", "notes"),
        "ingest_documents",
        {"path": "../secret", "collection": "notes"},
    ),
    (6, ("query", " "), "query_knowledge_base", {"query": " "}),
    (2, ("query", "x", "--top-k", "99"), "query_knowledge_base", {"query": "x", "top_k": "99"}),
]


@pytest.mark.parametrize(("exit_code", "command", "tool", "arguments"), REFUSED)
def test_command_line_reports_the_tools_errors(  # noqa: PLR0917 - a row of the table each
    session: Editor,
    notes: str,
    folder: Path,
    data: Path,
    exit_code: int,
    command: tuple[str, ...],
    tool: str,
    arguments: dict[str, Any],
) -> None:
    code, answered = run_research_agent(folder, data, *command)
    with pytest.raises(MCPError) as refused:
        session.call(tool, **arguments)
    assert code == exit_code
    assert answered["error"]["code"] == refused.value.error.code
    if exit_code != 2:
        assert answered["error"] == refused.value.error.model_dump()


MISUNDERSTOOD = [
    ("query",),
    ("query", "x", "--top-k", "abc"),
    ("query", "x", "--bogus"),
    ("bogus",),
    ("query", "x", "--timeout", "0"),
    ("query", "x", "--timeout=-1"),
    ("query", "x", "--timeout", "nan"),
    ("query", "x", "--timeout", "inf"),
]


@pytest.mark.parametrize("command", MISUNDERSTOOD)
def test_usage_errors_are_printed_as_json(tmp_path: Path, command: tuple[str, ...]) -> None:
    code, answered = run_research_agent(tmp_path, tmp_path / "data", *command)
    assert (code, answered["error"]["code"], answered["error"]["data"]["code"]) == (2, -32602, "INVALID_PARAMS")
    assert answered["error"]["data"]["details"][0]["message"] == answered["error"]["message"]
    assert answered["error"]["data"]["guidance"]
