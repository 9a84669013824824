"""Seed 003 at each of its doors, for callers whom nobody knows, on a server that asks others for credentials."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from mcp.client import Client as SdkClient

from tests.e2e.guarded import Client, kho, make_key
from tests.e2e.server import Server
from tests.e2e.test_faults import store_pid
from tests.mcp import MODERN
from tests.qdrant import running_qdrant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Ask = Callable[..., Any]

EXPERIENCE: dict[str, Any] = {
    "title": "React useState not updating state",
    "problem_description": "State variable not updating after setState call in React 18",
    "root_cause": "React 18's strict mode causes double rendering, and direct state updates may be batched incorrectly",
    "solution": "Use functional update form: setState(prev => prev + 1) instead of setState(count + 1)",
    "context": "React 18+ with strict mode enabled\n\nCode example:\nconst [count, setCount] = useState(0);\n"
    "setCount(count + 1); // Wrong\nsetCount(prev => prev + 1); // Correct",
    "keywords": ["react", "hooks", "state"],
}
REQUIRED = {name: EXPERIENCE[name] for name in ("title", "problem_description", "solution")}
SECRET = "ghp_" + "x7Kq2ZtB9mW4rYc1VnE8sLd5JfH3gTpA6uQo"
DOORS = ["HTTP", "JSON-RPC", "MCP", "MCP with a handshake"]


def http(server: Server, **headers: str) -> Ask:
    """Ask at a method's own route; whether the status says what the body says."""

    def ask(method: str, /, **params: Any) -> Any:
        response = server.post(f"/recall-kit/{method}", json.dumps(params).encode(), **headers)
        said = json.loads(response.data)
        assert said["success"] is (response.status == 200)
        return said

    return ask


def jsonrpc(server: Server) -> Ask:
    """Ask at the JSON-RPC door, which answers failures as results too."""

    def ask(method: str, /, **params: Any) -> Any:
        answer = server.rpc({"jsonrpc": "2.0", "method": f"recall-kit/{method}", "params": params, "id": 1})
        assert answer.keys() == {"jsonrpc", "result", "id"}, answer
        return answer["result"]

    return ask


def mcp(server: Server, mode: str) -> Ask:
    """Ask at the MCP door that is open to everyone."""

    def ask(method: str, /, **params: Any) -> Any:
        async def call() -> Any:
            async with SdkClient(f"{server.address}/mcp/recall-kit", mode=mode) as client:
                return await client.call_tool(method, params)

        result = asyncio.run(call())
        said = result.structured_content
        assert said["success"] is not bool(result.is_error)
        assert json.loads(result.content[0].text) == said
        return said

    return ask


@pytest.fixture(params=DOORS)
def ask(request: pytest.FixtureRequest, guarded: Server) -> Ask:
    doors = {
        "HTTP": lambda: http(guarded),
        "JSON-RPC": lambda: jsonrpc(guarded),
        "MCP": lambda: mcp(guarded, MODERN),
        "MCP with a handshake": lambda: mcp(guarded, "legacy"),
    }
    made: Ask = doors[request.param]()
    return made


def test_the_seeds_own_example(ask: Ask) -> None:
    word = f"zorblax{uuid4().hex[:8]}"
    experience = EXPERIENCE | {"title": f"{EXPERIENCE['title']} {word}"}
    answer = ask("submit_experience", **experience)
    id_ = answer["data"]["id"]
    assert answer == {
        "success": True,
        "data": {
            "id": id_,
            "status": "published",
            "message": "Experience record created and published successfully",
        },
    }
    found = ask("query_experiences", keywords=f"{word} useState", limit=10, offset=0)
    (record,) = [each for each in found["data"]["experiences"] if each["id"] == id_]
    created, relevance = record.pop("created_at"), record.pop("relevance_score")
    assert record == experience | {"id": id_, "query_count": 0}
    assert 0 < relevance <= 1
    assert created.endswith("Z")
    assert found["data"].keys() == {"experiences", "total", "limit", "offset"}
    assert (found["data"]["limit"], found["data"]["offset"]) == (10, 0)
    assert found["data"]["total"] >= 1
    shown = ask("get_experience", id=id_)["data"]
    assert {name: shown[name] for name in experience} == experience


WRONG: list[tuple[str, dict[str, Any], str, list[str]]] = [
    ("query_experiences", {}, "INVALID_KEYWORDS", ["keywords"]),
    ("query_experiences", {"keywords": ""}, "INVALID_KEYWORDS", ["keywords"]),
    ("query_experiences", {"keywords": " \n"}, "INVALID_KEYWORDS", ["keywords"]),
    ("query_experiences", {"keywords": ["react"]}, "INVALID_KEYWORDS", ["keywords"]),
    ("query_experiences", {"keywords": None}, "INVALID_KEYWORDS", ["keywords"]),
    ("query_experiences", {"keywords": "x", "limit": 0}, "INVALID_LIMIT", ["limit"]),
    ("query_experiences", {"keywords": "x", "limit": 51}, "INVALID_LIMIT", ["limit"]),
    ("query_experiences", {"keywords": "x", "limit": "10"}, "INVALID_LIMIT", ["limit"]),
    ("query_experiences", {"keywords": "x", "offset": -1}, "VALIDATION_ERROR", ["offset"]),
    ("query_experiences", {"keywords": "x", "page": 2}, "VALIDATION_ERROR", ["page"]),
    ("submit_experience", {"title": "x"}, "MISSING_REQUIRED_FIELDS", ["problem_description", "solution"]),
    ("submit_experience", {}, "MISSING_REQUIRED_FIELDS", ["problem_description", "solution", "title"]),
    ("get_experience", {}, "MISSING_REQUIRED_FIELDS", ["id"]),
    ("submit_experience", REQUIRED | {"title": "\u200b"}, "INVALID_TITLE", ["title"]),
    ("submit_experience", REQUIRED | {"title": ""}, "INVALID_TITLE", ["title"]),
    ("submit_experience", REQUIRED | {"title": "  "}, "INVALID_TITLE", ["title"]),
    ("submit_experience", REQUIRED | {"title": "x" * 501}, "INVALID_TITLE", ["title"]),
    ("submit_experience", REQUIRED | {"problem_description": ""}, "VALIDATION_ERROR", ["problem_description"]),
    ("submit_experience", REQUIRED | {"solution": "\t"}, "VALIDATION_ERROR", ["solution"]),
    ("submit_experience", REQUIRED | {"root_cause": ""}, "VALIDATION_ERROR", ["root_cause"]),
    ("submit_experience", REQUIRED | {"keywords": "react"}, "VALIDATION_ERROR", ["keywords"]),
    ("submit_experience", REQUIRED | {"keywords": ["a", " "]}, "VALIDATION_ERROR", ["keywords.1"]),
    ("submit_experience", REQUIRED | {"keywords": ["x" * 101]}, "VALIDATION_ERROR", ["keywords.0"]),
    ("submit_experience", REQUIRED | {"author": "me"}, "VALIDATION_ERROR", ["author"]),
]


def test_what_is_wrong_is_said_in_the_seeds_codes(ask: Ask) -> None:
    for method, params, code, fields in WRONG:
        answer = ask(method, **params)
        assert answer.keys() == {"success", "error"}
        assert answer["error"]["code"] == code, params
        assert sorted(each["field"] for each in answer["error"]["validation_errors"]) == fields
        assert answer["error"]["message"]


def test_what_is_not_sanitized_is_refused_and_never_repeated(ask: Ask, guarded: Server) -> None:
    answer = ask("submit_experience", **REQUIRED, context=f"curl -H 'Authorization: token {SECRET}'")
    error = answer["error"]
    assert (error["code"], error["message"]) == ("VALIDATION_ERROR", "Validation failed")
    assert {each["field"] for each in error["validation_errors"]} == {"context"}
    assert error["details"]["code"] == "CONTEXT_NOT_SANITIZED"
    assert SECRET not in json.dumps(answer)
    logs = [file.read_text(errors="replace") for file in guarded.data.rglob("*.log*")]
    assert logs
    assert not any(SECRET in text for text in logs)
    assert SECRET not in guarded.printed()
    assert ask("submit_experience", **REQUIRED, context="export GITHUB_TOKEN=<TOKEN>")["success"]


def test_what_is_no_request_is_answered_in_the_same_object(guarded: Server) -> None:
    for body, content_type in ((b"{", "application/json"), (b"[]", "application/json"), (b"{}", "text/plain")):
        response = guarded.post("/recall-kit/query_experiences", body, content_type)
        said = json.loads(response.data)
        assert (response.status, said["success"]) == (400, False)
        assert said["error"].keys() >= {"code", "message"}
    large = guarded.post("/recall-kit/submit_experience", json.dumps({"title": "x" * 5_000_000}).encode())
    assert json.loads(large.data)["error"]["code"] == "MISSING_REQUIRED_FIELDS"


def test_moderating_is_for_admins(guarded: Server) -> None:
    anonymous = Client(guarded, None)
    id_ = anonymous.result("recall-kit/submit_experience", **REQUIRED)["data"]["id"]
    admin, writer = (Client(guarded, make_key(guarded.data, "moderators", role)["key"]) for role in ("admin", "writer"))
    for method in ("update_experience", "delete_experience", "restore_experience"):
        assert anonymous.direct(f"recall-kit/{method}", id=id_)[0] == 401
        status, said = writer.direct(f"recall-kit/{method}", id=id_)
        assert (status, said["success"], said["error"]["code"]) == (403, False, "NOT_ALLOWED")
    assert admin.result("recall-kit/delete_experience", id=id_)["data"] == {"id": id_, "status": "deleted"}
    assert anonymous.direct("recall-kit/get_experience", id=id_)[0] == 404
    assert admin.result("recall-kit/restore_experience", id=id_)["data"] == {"id": id_, "status": "published"}
    assert admin.result("recall-kit/update_experience", id=id_, title="Changed")["data"]["title"] == "Changed"
    assert anonymous.result("recall-kit/get_experience", id=id_)["data"]["title"] == "Changed"


def test_a_wrong_key_is_not_anonymous(guarded: Server) -> None:
    status, said = Client(guarded, "kho_wrong").direct("recall-kit/query_experiences", keywords="x")
    assert (status, said["success"], said["error"]["code"]) == (401, False, "NOT_SIGNED_IN")


def test_the_open_mcp_door_offers_recall_kit_and_nothing_else(guarded: Server) -> None:
    async def offered() -> tuple[set[str], set[str], str]:
        async with SdkClient(f"{guarded.address}/mcp/recall-kit") as client:
            tools = {each.name for each in (await client.list_tools()).tools}
            prompts = {each.name for each in (await client.list_prompts()).prompts}
            prompt = await client.get_prompt("write_up_experience", {"problem": "useState is stale"})
            return tools, prompts, str(prompt.messages[0].content)

    tools, prompts, text = asyncio.run(offered())
    assert tools == {"query_experiences", "submit_experience", "get_experience"}
    assert prompts == {"write_up_experience"}
    assert "useState is stale" in text
    refused = guarded.post("/mcp", b"{}", accept="application/json, text/event-stream")
    assert refused.status == 401


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Server]:
    with Server(tmp_path / "data") as server:
        yield server


def settled(server: Server, expected: dict[str, int]) -> dict[str, int]:
    """The counts, when they are what is expected or no longer change."""
    ask, deadline = http(server), time.monotonic() + 30
    seen: dict[str, int] = {}
    while time.monotonic() < deadline and seen != expected:
        seen = {id_: ask("get_experience", id=id_)["data"]["query_count"] for id_ in expected}
        time.sleep(0.1)
    return seen


def test_every_count_is_exact_after_many_queries_beside_submissions_and_a_crash(own: Server) -> None:
    """Each answer that was given is counted, though the server is killed while it counts."""
    ask = http(own)
    ids = [ask("submit_experience", **REQUIRED | {"title": f"Quasar build fails {n}"})["data"]["id"] for n in range(12)]
    submitted: list[str] = []

    def query(keywords: str, limit: int) -> list[str]:
        found = ask("query_experiences", keywords=keywords, limit=limit)["data"]["experiences"]
        return [each["id"] for each in found]

    def work(number: int) -> list[str]:
        if number % 20:
            return query("quasar build fails", number % 12 + 1)
        id_ = ask("submit_experience", **REQUIRED | {"title": f"Kestrel cache miss {number}"})["data"]["id"]
        submitted.append(id_)
        found = query(f"kestrel cache miss {number}", 50)
        assert id_ in found
        return found

    with ThreadPoolExecutor(32) as pool:
        answers = list(pool.map(work, range(300)))
    own.kill()
    own.start()
    expected = {id_: sum(answer.count(id_) for answer in answers) for id_ in [*ids, *submitted]}
    assert sum(expected.values()) > 1000
    assert settled(own, expected) == expected


def test_a_store_that_does_not_answer_is_a_database_error_at_each_door(own: Server) -> None:
    http(own)("submit_experience", **REQUIRED)
    doors = [http(own), jsonrpc(own), mcp(own, MODERN)]
    asked: list[tuple[Ask, str, dict[str, Any]]] = [
        call
        for door in doors
        for call in ((door, "submit_experience", REQUIRED), (door, "query_experiences", {"keywords": "useState"}))
    ]
    pid = store_pid(own)
    os.kill(pid, signal.SIGSTOP)
    try:
        with ThreadPoolExecutor(len(asked)) as pool:
            answers = list(pool.map(lambda call: call[0](call[1], **call[2]), asked))
    finally:
        os.kill(pid, signal.SIGCONT)
    assert [each["error"]["code"] for each in answers] == ["DATABASE_ERROR"] * len(asked)
    assert all(each["success"] is False and each["error"]["message"] for each in answers)
    assert http(own)("query_experiences", keywords="useState")["success"]


def test_an_index_elsewhere_may_be_away_while_experiences_are_submitted(tmp_path: Path) -> None:
    with running_qdrant() as qdrant, Server(tmp_path / "data", environment={"KHO_QDRANT_URL": qdrant.url}) as server:
        ask = http(server)
        first = ask("submit_experience", **REQUIRED)["data"]["id"]
        found = ask("query_experiences", keywords="useState is not updated")["data"]["experiences"]
        assert [each["id"] for each in found] == [first]
        assert settled(server, {first: 1}) == {first: 1}
        qdrant.stop()
        second = ask("submit_experience", **REQUIRED)["data"]["id"]
        assert ask("query_experiences", keywords="useState")["error"]["code"] == "DATABASE_ERROR"
        qdrant.start()
        deadline = time.monotonic() + 30
        while len(found := ask("query_experiences", keywords="useState")["data"]["experiences"]) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.2)
        assert {each["id"] for each in found} == {first, second}
        assert ask("get_experience", id=second)["data"]["similar_to"] == first


def test_an_index_that_was_lost_is_made_again(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Server(data) as server:
        ask = http(server)
        id_, gone = (ask("submit_experience", **REQUIRED)["data"]["id"] for _ in range(2))
        ask("delete_experience", id=gone)
    shutil.rmtree(data / "passages")
    done = kho("reindex", "--data", str(data), "--collection", "experiences", "--json")
    assert json.loads(done.stdout) == {"indexed": 2, "unchanged": 0, "removed": 0}, done.stderr
    with Server(data) as server:
        found = http(server)("query_experiences", keywords="useState is not updated")["data"]
        assert [each["id"] for each in found["experiences"]] == [id_]
