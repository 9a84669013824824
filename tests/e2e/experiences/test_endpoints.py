"""recall-kit at each of its endpoints, for anonymous callers, on a server that otherwise requires credentials."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from mcp.client import Client as SdkClient

from tests.helpers.api_client import ApiClient, make_key
from tests.helpers.mcp_events import MODERN
from tests.helpers.recall_kit_endpoints import EXPERIENCE, REQUIRED, Ask, call_http, call_jsonrpc, call_mcp

if TYPE_CHECKING:
    from tests.helpers.kho_server import KhoServer


SECRET = "ghp_" + "x7Kq2ZtB9mW4rYc1VnE8sLd5JfH3gTpA6uQo"
ENDPOINTS = ["HTTP", "JSON-RPC", "MCP", "MCP with a handshake"]


@pytest.fixture(params=ENDPOINTS)
def ask(request: pytest.FixtureRequest, guarded: KhoServer) -> Ask:
    callers = {
        "HTTP": lambda: call_http(guarded),
        "JSON-RPC": lambda: call_jsonrpc(guarded),
        "MCP": lambda: call_mcp(guarded, MODERN),
        "MCP with a handshake": lambda: call_mcp(guarded, "legacy"),
    }
    caller: Ask = callers[request.param]()
    return caller


def test_contract_example(ask: Ask) -> None:
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
    response = ask("query_experiences", keywords=f"{word} useState", limit=10, offset=0)
    (record,) = [each for each in response["data"]["experiences"] if each["id"] == id_]
    created, relevance = record.pop("created_at"), record.pop("relevance_score")
    assert record == experience | {"id": id_, "query_count": 0}
    assert 0 < relevance <= 1
    assert created.endswith("Z")
    assert response["data"].keys() == {"experiences", "total", "limit", "offset"}
    assert (response["data"]["limit"], response["data"]["offset"]) == (10, 0)
    assert response["data"]["total"] >= 1
    stored = ask("get_experience", id=id_)["data"]
    assert {name: stored[name] for name in experience} == experience


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


def test_errors_use_the_contracts_codes(ask: Ask) -> None:
    for method, params, code, fields in WRONG:
        answer = ask(method, **params)
        assert answer.keys() == {"success", "error"}
        assert answer["error"]["code"] == code, params
        assert sorted(each["field"] for each in answer["error"]["validation_errors"]) == fields
        assert answer["error"]["message"]


def test_unsanitized_text_is_rejected_and_never_echoed(ask: Ask, guarded: KhoServer) -> None:
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


def test_malformed_request_gets_the_contracts_error_object(guarded: KhoServer) -> None:
    for body, content_type in ((b"{", "application/json"), (b"[]", "application/json"), (b"{}", "text/plain")):
        response = guarded.post("/recall-kit/query_experiences", body, content_type)
        error_body = json.loads(response.data)
        assert (response.status, error_body["success"]) == (400, False)
        assert error_body["error"].keys() >= {"code", "message"}
    for size, code in ((200_000, "MISSING_REQUIRED_FIELDS"), (5_000_000, "TOO_LARGE")):
        large = guarded.post("/recall-kit/submit_experience", json.dumps({"title": "x" * size}).encode())
        assert json.loads(large.data)["error"]["code"] == code


def test_only_admins_of_the_operators_tenant_moderate(guarded: KhoServer) -> None:
    anonymous = ApiClient(guarded, None)
    id_ = anonymous.result("recall-kit/submit_experience", **REQUIRED)["data"]["id"]
    admin, writer, stranger = (
        ApiClient(guarded, make_key(guarded.data, tenant, role)["key"])
        for tenant, role in (("local", "admin"), ("local", "writer"), ("acme", "admin"))
    )
    for method in ("update_experience", "delete_experience", "restore_experience"):
        assert anonymous.direct(f"recall-kit/{method}", id=id_)[0] == 401
        for refused in (writer, stranger):
            status, body = refused.direct(f"recall-kit/{method}", id=id_)
            assert (status, body["success"], body["error"]["code"]) == (403, False, "NOT_ALLOWED")
    assert admin.result("recall-kit/delete_experience", id=id_)["data"] == {"id": id_, "status": "deleted"}
    assert anonymous.direct("recall-kit/get_experience", id=id_)[0] == 404
    assert admin.result("recall-kit/restore_experience", id=id_)["data"] == {"id": id_, "status": "published"}
    assert admin.result("recall-kit/update_experience", id=id_, title="Changed")["data"]["title"] == "Changed"
    assert anonymous.result("recall-kit/get_experience", id=id_)["data"]["title"] == "Changed"


def test_invalid_key_is_not_treated_as_anonymous(guarded: KhoServer) -> None:
    status, body = ApiClient(guarded, "kho_wrong").direct("recall-kit/query_experiences", keywords="x")
    assert (status, body["success"], body["error"]["code"]) == (401, False, "NOT_SIGNED_IN")


def test_public_mcp_endpoint_lists_only_recall_kit_tools(guarded: KhoServer) -> None:
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
