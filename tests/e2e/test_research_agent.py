"""Seed 004 by its real ways in: an editor over STDIO, the command line, HTTP; and files that change meanwhile."""

from __future__ import annotations

import json
import subprocess
import time
from typing import TYPE_CHECKING, Any

import pytest
from mcp.shared.exceptions import MCPError

from tests.e2e.editor import COMMAND, Editor, editor, prompt
from tests.e2e.server import Server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PLANTS = "# Plants\n\nFerns are watered daily.\n\n## Cactus\n\nA cactus needs hardly any water.\n"
BRAKES = "# Xe đạp\n\nCách chỉnh phanh xe đạp cho khỏi kêu.\n"
CODE = '# Tools\n\n```python\ndef sharpen(knife):\n    """Sharpen a knife on a whetstone."""\n    return knife\n```\n'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the editor has open."""
    folder = tmp_path_factory.mktemp("research") / "work"
    write(folder, {"docs/plants.md": PLANTS, "docs/deep/brakes.md": BRAKES, "docs/tools.md": CODE})
    (folder / "docs" / "picture.png").write_bytes(b"\x89PNG\0\0")
    write(folder, {"docs/.hidden.md": "hidden", "docs/.gitignore": "*.log\n", "docs/x.log": "ignored"})
    return folder


@pytest.fixture(scope="module")
def data(folder: Path) -> Path:
    """The data folder that everything here shares."""
    return folder.parent / "data"


@pytest.fixture(scope="module")
def session(folder: Path, data: Path) -> Iterator[Editor]:
    """An editor, in the revisions of MCP that begin with a handshake."""
    with editor(folder, data) as running:
        yield running


@pytest.fixture(scope="module")
def notes(session: Editor) -> str:
    """A collection that holds the documents."""
    session.result("manage_collections", action="create", collection_name="notes")
    done = session.result("ingest_documents", path="docs", collection="notes", recursive=True)
    assert (done["added"], [each["path"] for each in done["failed"]]) == (3, ["docs/picture.png"])
    return "notes"


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def sources(session: Editor, query: str, collection: str) -> list[str]:
    found = session.result("query_knowledge_base", query=query, collections=collection)
    return [each["source_document"] for each in found["results"]]


def held(session: Editor, collection: str) -> dict[str, str]:
    info = session.result("manage_collections", action="info", collection_name=collection)
    return {each["path"]: each["hash"] for each in info["documents"]}


def test_the_tools_of_the_seed(session: Editor) -> None:
    required = {name: set(tool.input_schema.get("required", [])) for name, tool in session.tools().items()}
    assert required == {
        "query_knowledge_base": {"query"},
        "manage_collections": {"action"},
        "ingest_documents": {"path", "collection"},
        "manage_projects": {"action"},
        "augment_knowledge": {"content", "source", "collection"},
    }


def test_a_query_answers_in_the_seed_s_form(session: Editor, notes: str) -> None:
    answer = session.call(
        "query_knowledge_base", query="how much water does a cactus need?", collections=notes, top_k=2
    )
    found = answer.structured_content
    assert set(found) == {"status", "results", "query_refinement"}
    assert found["status"] == "success"
    first = found["results"][0]
    assert first == {
        "content": "## Cactus\n\nA cactus needs hardly any water.",
        "relevance_score": first["relevance_score"],
        "relevance_label": "Highly Relevant",
        "source_document": "docs/plants.md",
        "header_path": "Plants > Cactus",
        "metadata": {"document_title": "Plants", "content_type": "prose", "chunk_sequence_id": 2},
    }
    assert 0.75 <= first["relevance_score"] <= 1
    assert found["query_refinement"]["status"] == "optimal"
    text = answer.content[0].text
    assert "### 1. Plants — Plants > Cactus" in text
    assert "> A cactus needs hardly any water." in text


def test_code_is_found_as_code_and_other_languages_find_each_other(session: Editor, notes: str) -> None:
    found = session.result("query_knowledge_base", query="sharpen a knife", collections=notes)
    assert found["results"][0]["metadata"]["content_type"] == "code_block"
    assert sources(session, "squeaking bicycle brakes", notes)[0] == "docs/deep/brakes.md"


def test_the_document_at_hand_changes_the_ranking(session: Editor, notes: str) -> None:
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
    found = session.result("query_knowledge_base", query="temperature of water", project_name="kitchen")
    assert [each["metadata"]["document_title"] for each in found["results"]] == ["Tea"]
    session.result("manage_projects", action="unlink", project_name="kitchen", collections="tea")
    shown = session.result("manage_projects", action="list")["projects"]
    assert [(each["name"], each["collections"]) for each in shown] == [("kitchen", [notes])]


def test_resources_and_prompts(session: Editor, notes: str) -> None:
    session.result("query_knowledge_base", query="what was asked last", collections=notes)
    assert notes in [each["name"] for each in session.read("knowledge://collections")["collections"]]
    documents = session.read(f"knowledge://collections/{notes}")["documents"]
    assert "docs/plants.md" in [each["path"] for each in documents]
    assert session.read("knowledge://queries")["queries"][0]["query"] == "what was asked last"
    assert "'ferns'" in session.prompt("refine_query", query="ferns")
    assert "'a garden plan'" in session.prompt("extract_context", task="a garden plan")


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
    """A project that is linked to nothing."""
    made = session.result("manage_projects", action="create", project_name="garden")
    assert notes not in made["project"]["collections"]
    return "garden"


@pytest.mark.parametrize(("code", "name", "tool", "arguments"), REFUSALS)
def test_errors_have_the_seed_s_codes_and_guidance(  # noqa: PLR0917 - a row of the table each
    session: Editor, garden: str, code: int, name: str, tool: str, arguments: dict[str, Any]
) -> None:
    with pytest.raises(MCPError) as refused:
        session.call(tool, **arguments)
    assert refused.value.error.code == code
    assert refused.value.error.data["code"] == name
    assert refused.value.error.data["guidance"]
    assert "Traceback" not in json.dumps(refused.value.error.data)


def test_where_the_backend_does_not_answer(folder: Path, data: Path) -> None:
    with (
        editor(folder, data, "--endpoint", "http://127.0.0.1:9") as lonely,
        pytest.raises(MCPError) as refused,
    ):
        lonely.call("query_knowledge_base", query="x")
    assert refused.value.error.code == -32000
    assert refused.value.error.data["guidance"]


def test_the_newest_revision_keeps_codes_to_itself(folder: Path, data: Path, notes: str) -> None:
    with editor(folder, data, mode="auto") as newest:
        assert newest.client
        assert newest.client.protocol_version == "2026-07-28"
        answer = newest.call("query_knowledge_base", query="x", collections="none")
        assert answer.is_error
        assert answer.structured_content["code"] == "COLLECTION_NOT_FOUND"
        assert answer.structured_content["guidance"] in answer.content[0].text
        newest.result("manage_collections", action="create", collection_name="brief")
        newest.answer = False
        assert newest.call("manage_collections", action="delete", collection_name="brief").is_error
        newest.answer = True
        newest.result("manage_collections", action="delete", collection_name="brief")
        assert newest.asked == ["Delete the collection 'brief' and everything in it?"] * 2


def test_deletion_is_asked_for(session: Editor) -> None:
    session.result("manage_collections", action="create", collection_name="doomed")
    session.answer = False
    with pytest.raises(MCPError, match="nobody confirmed it"):
        session.call("manage_collections", action="delete", collection_name="doomed")
    assert held(session, "doomed") == {}
    session.answer = True
    session.result("manage_collections", action="delete", collection_name="doomed")
    with pytest.raises(MCPError, match="Collection not found"):
        held(session, "doomed")
    assert session.asked[-1] == "Delete the collection 'doomed' and everything in it?"


def test_the_command_line_gives_the_same(session: Editor, notes: str, folder: Path, data: Path) -> None:
    into = ("--collection", notes)
    asked = {"query": "how much water does a cactus need?", "collections": notes, "top_k": 2}
    code, answered = prompt(folder, data, "query", str(asked["query"]), "--collections", notes, "--top-k", "2")
    assert (code, answered) == (0, session.result("query_knowledge_base", **asked))
    code, answered = prompt(folder, data, "collections", "info", notes)
    assert (code, answered) == (0, session.result("manage_collections", action="info", collection_name=notes))
    code, answered = prompt(folder, data, "kb", "add-folder", "docs", *into, "--recursive")
    assert code == 7
    assert answered == session.result("ingest_documents", path="docs", collection=notes, recursive=True)
    assert (answered["unchanged"], answered["added"], len(answered["failed"])) == (3, 0, 1)
    code, answered = prompt(folder, data, "collections", "list")
    assert (code, answered) == (0, session.result("manage_collections", action="list"))
    text = {"content": "Roses are pruned in March.", "source": "roses", "title": "Roses"}
    added = prompt(folder, data, "kb", "add-text", text["content"], "--source", "roses", "--title", "Roses", *into)
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


def test_projects_at_a_prompt_are_those_of_the_editor(session: Editor, notes: str, folder: Path, data: Path) -> None:
    for command, asked in PROJECTS:
        code, answered = prompt(folder, data, "projects", *command)
        assert code == 0
        if asked["action"] == "create":
            continue  # once only
        told = session.result("manage_projects", **asked)
        for each in (answered, told):
            each.get("project", {}).pop("updated_at", None)
        assert answered == told


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
def test_the_command_line_refuses_as_the_tools_do(  # noqa: PLR0917 - a row of the table each
    session: Editor,
    notes: str,
    folder: Path,
    data: Path,
    exit_code: int,
    command: tuple[str, ...],
    tool: str,
    arguments: dict[str, Any],
) -> None:
    code, answered = prompt(folder, data, *command)
    with pytest.raises(MCPError) as refused:
        session.call(tool, **arguments)
    assert code == exit_code
    assert answered["error"]["code"] == refused.value.error.code
    if exit_code != 2:
        assert answered["error"] == refused.value.error.model_dump()


def test_what_is_found_follows_the_files(session: Editor, folder: Path) -> None:
    write(folder, {"log/a.md": "# A\n\nThe harbour opens at six.", "log/b.md": "# B\n\nThe lighthouse is red."})
    session.result("manage_collections", action="create", collection_name="log")

    def ingest() -> dict[str, int]:
        done = session.result("ingest_documents", path="log", collection="log")
        return {name: done[name] for name in ("added", "updated", "unchanged", "removed") if done[name]}

    assert ingest() == {"added": 2}
    before = session.result("manage_collections", action="info", collection_name="log")
    assert ingest() == {"unchanged": 2}
    assert session.result("manage_collections", action="info", collection_name="log") == before

    write(folder, {"log/a.md": "# A\n\nThe harbour opens at nine."})
    assert ingest() == {"updated": 1, "unchanged": 1}
    found = session.result("query_knowledge_base", query="when does the harbour open?", collections="log")
    assert [each["content"] for each in found["results"] if "harbour" in each["content"]] == [
        "# A\n\nThe harbour opens at nine."
    ]

    (folder / "log/b.md").rename(folder / "log/c.md")
    assert ingest() == {"added": 1, "unchanged": 1, "removed": 1}
    assert sources(session, "what colour has the lighthouse?", "log")[0] == "log/c.md"
    assert "log/b.md" not in held(session, "log")

    (folder / "log/c.md").unlink()
    assert ingest() == {"unchanged": 1, "removed": 1}
    assert sources(session, "what colour has the lighthouse?", "log") in (["log/a.md"], [])


def test_two_ingestions_at_once_make_no_double(session: Editor, folder: Path, data: Path) -> None:
    write(folder, {f"pair/{number}.md": f"# Page {number}\n\nBerth {number} is free." for number in range(12)})
    session.result("manage_collections", action="create", collection_name="pair")
    command = [COMMAND, "kb", "add-folder", "pair", "--collection", "pair", "--json", "--data", str(data)]
    running = [subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    done = [json.loads(each.communicate(timeout=60)[0]) for each in running]
    assert [each["failed"] for each in done] == [[], []]
    assert sum(each["added"] for each in done) == 12
    info = session.result("manage_collections", action="info", collection_name="pair")["collection"]
    assert (info["documents"], info["chunks"]) == (12, 12)
    found = session.result("query_knowledge_base", query="which berth is free?", collections="pair", top_k=50)
    assert len({each["source_document"] for each in found["results"]}) == len(found["results"]) == 12


def test_progress_is_told_and_a_cancelled_ingestion_goes_on_later(session: Editor, folder: Path) -> None:
    text = "Ships of many kinds lie here, and each has its berth. " * 30
    write(folder, {f"long/{number:02}.md": f"# Ship {number}\n\n{text}" for number in range(24)})
    session.result("manage_collections", action="create", collection_name="long")
    session.progress.clear()
    session.call_and_cancel("ingest_documents", 18, path="long", collection="long")
    assert {total for _, total in session.progress} == {24}
    assert 0 < len(held(session, "long")) < 24
    done = session.result("ingest_documents", path="long", collection="long")
    assert (done["added"] + done["updated"] + done["unchanged"], done["failed"]) == (24, [])
    assert done["unchanged"] > 0
    assert len(held(session, "long")) == 24


def test_over_http_a_long_ingestion_is_a_job_that_survives_kill_9(tmp_path: Path) -> None:
    text = "Ships of many kinds lie here, and each has its berth. " * 8
    write(tmp_path / "root", {f"{number:02}.md": f"# Ship {number}\n\n{text}" for number in range(16)})
    with Server(tmp_path / "data", "--root", str(tmp_path / "root")) as server:
        server.call("research-agent/manage_collections", action="create", collection_name="ships")
        forbidden = server.error("research-agent/ingest_documents", collection="ships", path="../data")
        assert (forbidden["code"], forbidden["data"]["code"]) == (-32003, "DOCUMENT_PATH_FORBIDDEN")
        accepted = server.call("research-agent/ingest_documents", collection="ships", path=".", recursive=True)
        assert accepted["status"] == "accepted"
        job = {"job_id": accepted["job_id"]}
        while not server.call("research-agent/get_ingestion", **job)["processed"] >= 3:
            time.sleep(0.05)
        server.kill()
        server.start()
        while (told := server.call("research-agent/get_ingestion", **job))["status"] != "done":
            assert told["status"] in ("queued", "running")
            time.sleep(0.1)
        assert (told["total"], told["processed"], told["failed"]) == (16, 16, [])
        info = server.call("research-agent/manage_collections", action="info", collection_name="ships")
        assert info["collection"]["documents"] == 16
        sent = [{"path": "sent.md", "content": f"# Sent\n\n{' ' * 25_000}words"}]
        begun = server.call("research-agent/ingest_documents", collection="ships", documents=sent)
        assert begun["status"] == "accepted"
        blank, long = (
            server.post("/research-agent/query_knowledge_base", json.dumps({"query": query}).encode())
            for query in (" ", "x" * 2049)
        )
        for answer in (blank, long):
            assert (answer.status, json.loads(answer.data)["error"]["code"]) == (400, "QUERY_INVALID")
        listed = json.loads(server.get("/servers/research-agent/capabilities").data)["capabilities"]["tools"]
        assert {"query_knowledge_base", "ingest_documents"} < {each["name"] for each in listed}
        unknown = server.error("research-agent/get_ingestion", job_id="none")
        assert (unknown["code"], unknown["data"]["code"]) == (-32003, "DOCUMENT_JOB_NOT_FOUND")
