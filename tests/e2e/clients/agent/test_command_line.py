"""The command line answers and rejects as the tools do."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from mcp.shared.exceptions import MCPError

from tests.helpers.editor_folder import sources
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
    assert code == 0
    assert answered == session.result("ingest_documents", path="docs", collection=notes, recursive=True)
    assert (answered["unchanged"], answered["added"], answered["skipped"]) == (3, 0, {"pictures": 1})
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


def test_folder_of_other_encodings_outside_of_the_working_folder(
    session: Editor, notes: str, folder: Path, data: Path, tmp_path: Path
) -> None:
    """A typed folder is its own root. Each encoding is reported, and its words are found."""
    typed = tmp_path / "plants"
    typed.mkdir()
    files = {
        "兰花.txt": "兰花每十天浇一次水。".encode("gb18030"),
        "oi.txt": b"C\xe2y \xf4\xd2i c\xe2\xccn n\xfd\xf5\xecc.",
        "moss.txt": "Moss likes rain.\n".encode("utf-16-le"),
        "rose.txt": "Le rosier fleurit l'été.".encode("cp1252"),
        "fern.txt": b"Ferns like shade.",
    }
    for name, content in files.items():
        (typed / name).write_bytes(content)
    (typed / "leaf.jpg").write_bytes(b"\xff\xd8\xff\0")
    run_research_agent(folder, data, "collections", "create", "plants")
    code, answered = run_research_agent(folder, data, "kb", "add-folder", str(typed), "--collection", "plants")
    assert (code, answered["added"], answered["failed"], answered["skipped"]) == (0, 5, [], {"pictures": 1})
    assert {each["path"]: each["note"] for each in answered["notes"]} == {
        "plants/兰花.txt": "read as GB18030",
        "plants/oi.txt": "read as Windows-1258",
        "plants/moss.txt": "read as UTF-16",
        "plants/rose.txt": "read as Windows-1252",
    }
    for query, name in {
        "兰花浇水": "兰花.txt",
        "ổi cần nước": "oi.txt",
        "moss rain": "moss.txt",
        "rosier été": "rose.txt",
    }.items():
        assert sources(session, query, "plants")[0] == f"plants/{name}"
    with pytest.raises(MCPError, match="outside the allowed roots"):
        session.call("ingest_documents", path=str(typed), collection="plants")
    code, answered = run_research_agent(
        folder, data, "kb", "add-document", str(typed / "leaf.jpg"), "--collection", "plants"
    )
    assert (code, answered["error"]["data"]["code"]) == (5, "DOCUMENT_UNREADABLE")
    assert answered["error"]["message"].endswith("holds no text: pictures are skipped")


def test_documents_are_listed_and_removed_one_by_one(notes: str, folder: Path, data: Path) -> None:
    into = ("--collection", "single")
    run_research_agent(folder, data, "collections", "create", "single")
    for source in ("roses", "trees/oak"):
        run_research_agent(folder, data, "kb", "add-text", "They like sun.", "--source", source, *into)
    listings = {
        prefix: run_research_agent(folder, data, "kb", "list", "--prefix", prefix, *into)[1]
        for prefix in ("", "trees/")
    }
    assert {prefix: [each["path"] for each in listing["documents"]] for prefix, listing in listings.items()} == {
        "": ["roses", "trees/oak"],
        "trees/": ["trees/oak"],
    }
    code, answered = run_research_agent(folder, data, "kb", "remove", "roses", *into)
    assert (code, answered["message"]) == (0, "Removed roses from the collection 'single'.")
    code, answered = run_research_agent(folder, data, "kb", "remove", "roses", *into)
    assert (code, answered["error"]["data"]["code"]) == (5, "DOCUMENT_NOT_FOUND")


@pytest.mark.parametrize("type_", ["fundamental", "project-specific"])
def test_each_action_takes_a_name_and_a_type(notes: str, folder: Path, data: Path, type_: str) -> None:
    """The documented form `collections {action} {name} --type={type}` works for every action."""
    name = f"typed-{type_}"
    for action in ("create", "info", "list"):
        code, answered = run_research_agent(folder, data, "collections", action, name, f"--type={type_}")
        assert (code, answered["status"]) == (0, "success")
        assert name in [each["name"] for each in answered.get("collections", [answered.get("collection")])]
    code, answered = run_research_agent(folder, data, "collections", "delete", name, f"--type={type_}")
    assert (code, answered["error"]["data"]["code"]) == (4, "COLLECTION_NOT_CONFIRMED")
    code, _ = run_research_agent(folder, data, "collections", "delete", name, f"--type={type_}", "--yes")
    assert code == 0


@pytest.mark.parametrize("confirmation", [(), ("--yes",)])
def test_deletion_of_a_missing_collection_says_so(
    notes: str, folder: Path, data: Path, confirmation: tuple[str, ...]
) -> None:
    code, answered = run_research_agent(folder, data, "collections", "delete", "none", *confirmation)
    assert (code, answered["error"]["data"]["code"]) == (4, "COLLECTION_NOT_FOUND")


def test_evaluation_measures_a_users_own_queries(notes: str, folder: Path, data: Path) -> None:
    """nDCG@10 and recall@10 of judged queries, and where the relevant documents are that do not come first."""
    queries = folder / "queries.jsonl"
    judged = [
        {"query": "how much water does a cactus need?", "relevant": ["docs/plants.md"]},
        {"query": "how much water does a cactus need?", "relevant": ["docs/tools.md", "docs/none.md"]},
    ]
    queries.write_text("\n".join(json.dumps(each) for each in judged), encoding="utf-8")
    code, measured = run_research_agent(folder, data, "evaluate", str(queries), "--collections", notes)
    (loss,) = measured.pop("losses")
    assert (code, measured["queries"], measured["recall_at_10"]) == (0, 2, 0.75)
    assert measured["ndcg_at_10"] == pytest.approx((1 + loss["ndcg"]) / 2, abs=1e-4)
    assert (loss["first"], loss["ranks"]["docs/none.md"]) == ("docs/plants.md", None)
    assert loss["ranks"]["docs/tools.md"] > 1


@pytest.mark.parametrize("line", ["{", "[]", '{"query": "x"}', '{"query": "x", "relevant": "a.md"}', ""])
def test_evaluation_refuses_other_files(notes: str, folder: Path, data: Path, line: str) -> None:
    queries = folder / "queries.jsonl"
    queries.write_text(line, encoding="utf-8")
    code, answered = run_research_agent(folder, data, "evaluate", str(queries), "--collections", notes)
    assert (code, answered["error"]["data"]["code"]) == (3, "CONFIGURATION")
    assert '"relevant"' in answered["error"]["data"]["guidance"]


def test_missing_root_is_refused_at_start(folder: Path, data: Path) -> None:
    commands = (["mcp"], ["kb", "add-document", "docs/plants.md", "--collection", "notes"])
    for command in commands:
        code, answered = run_research_agent(folder, data, *command, "--root", "/nope")
        assert (code, answered["error"]["code"]) == (3, -32001)
        assert answered["error"]["message"] == "The root '/nope' is not a folder."
        assert "KHO_ROOT" in answered["error"]["data"]["guidance"]


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
        if params["action"] == "unlink":
            run_research_agent(folder, data, "projects", "link", *command[1:])
        result = session.result("manage_projects", **params)
        for each in (answered, result):
            each.get("project", {}).pop("updated_at", None)
        assert answered == result


def test_unlinking_says_what_was_not_linked(session: Editor, notes: str) -> None:
    session.result("manage_projects", action="create", project_name="barn", collections=notes)
    unlink = {"action": "unlink", "project_name": "barn", "collections": f"{notes}, hay"}
    messages = [session.result("manage_projects", **unlink)["message"] for _ in range(2)]
    assert messages == [
        f"Unlinked the project 'barn' from {notes}. The project 'barn' was not linked to hay.",
        f"The project 'barn' was not linked to {notes}, hay.",
    ]


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
        told = refused.value.error
        assert answered["error"]["data"] == told.data
        assert told.message.startswith(answered["error"]["message"])
        assert told.message.endswith(told.data["guidance"])


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
