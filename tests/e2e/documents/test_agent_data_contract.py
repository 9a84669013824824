"""agent-data's contract: each of its requests, through /actions and through the direct routes."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from tests.helpers.wait import until

if TYPE_CHECKING:
    from tests.helpers.kho_server import KhoServer

CREATE = {
    "parent_id": "root",
    "content": {"mime_type": "text/markdown", "body": "# Introduction\nNội dung văn bản..."},
    "metadata": {"title": "Lộ trình Onboarding", "tags": ["onboarding", "ops"], "source": "cursor"},
    "is_human_readable": True,
    "created_at": "2025-09-16T03:00:00Z",
}
UPDATE = {
    "patch": {
        "content": {"mime_type": "text/markdown", "body": "# Introduction\nĐã cập nhật nội dung."},
        "metadata": {
            "title": "Lộ trình Onboarding (v2)",
            "tags": ["onboarding", "ops", "v2"],
            "last_editor": "codex-bot",
        },
        "is_human_readable": False,
    },
    "update_mask": ["content", "metadata", "is_human_readable"],
}
DELETE = {"reason": "retired", "deleted_by": "cursor-agent", "delete_at": "2025-09-16T04:00:00Z"}
MOVE = {"new_parent_id": "collection-strategy", "position": {"ordering": 3, "before": "doc-legacy-002"}}


class Client:
    """One of the two endpoints of agent-data, for one tenant."""

    def __init__(self, server: KhoServer, endpoint: str) -> None:
        self.server = server
        self.endpoint = endpoint
        # All callers of an open server's direct routes are one tenant: unique ids keep tests apart.
        self.tenant = f"tenant-{uuid4().hex}" if endpoint == "actions" else "local"
        self.own = uuid4().hex[:8]
        self.request_id = ""

    def __call__(self, action: str, /, **payload: Any) -> tuple[int, Any]:
        """Send an action and return status and body."""
        self.request_id = str(uuid4())
        return self.send(action, payload, self.request_id)

    def send(self, action: str, payload: dict[str, Any], request_id: str) -> tuple[int, Any]:
        """Send an action under an id and return status and body."""
        if self.endpoint == "actions":
            path, body = "/actions", envelope(action, payload, request_id, self.tenant)
        else:
            reads = action in ("get_document", "find_documents", "list_children", "document_history")
            path, body = f"/agent-data/{action}", payload if reads else payload | {"request_id": request_id}
        response = self.server.post(path, json.dumps(body, ensure_ascii=False).encode())
        return response.status, json.loads(response.data)

    def ok(self, action: str, /, **payload: Any) -> Any:
        """Return the result of an action without the request's id."""
        status, body = self(action, **payload)
        assert status == 200, body
        if self.endpoint == "actions" or "request_id" in body:
            assert body.pop("request_id") == self.request_id
        return body

    def refused(self, status: int, code: str, action: str, /, **payload: Any) -> Any:
        """Return the details of an error, which has exactly the contract's fields."""
        got_status, body = self(action, **payload)
        assert (got_status, body["error"]["code"]) == (status, code), body
        assert set(body["error"]) == {"code", "message", "details", "guidance"}
        assert set(body) <= {"error", "request_id"}
        assert body.get("request_id", self.request_id) == self.request_id
        return body["error"]["details"]

    def name(self, name: str) -> str:
        """Return an id unique to this test."""
        return f"{name}:{self.own}"


def envelope(action: str, payload: Any, request_id: str, tenant: str) -> dict[str, Any]:
    """Return the contract's envelope."""
    principal = {"sub": "service-account@example.com", "roles": ["cursor", "codex"], "tenant_id": tenant}
    return {"action": action, "request_id": request_id, "principal": principal, "payload": payload}


@pytest.fixture(params=["actions", "direct"])
def client(server: KhoServer, request: pytest.FixtureRequest) -> Client:
    return Client(server, request.param)


def test_create_document(client: Client) -> None:
    document_id = str(uuid4())
    created = client.ok("create_document", document_id=document_id, **CREATE)
    assert {"document_id", "revision", "updated_at"} <= set(created)
    assert (created["document_id"], created["revision"]) == (document_id, 1)
    document = client.ok("get_document", document_id=document_id)
    assert document == {"document_id": document_id, "revision": 1, "updated_at": created["updated_at"], **CREATE}
    client.refused(409, "ALREADY_EXISTS", "create_document", document_id=document_id, **CREATE)
    details = client.refused(
        404, "NOT_FOUND", "create_document", document_id=client.name("x"), **CREATE | {"parent_id": "no"}
    )
    assert details == {"parent_id": "no"}
    for content in ({"mime_type": "text/markdown"}, {"mime_type": "image/png", "body": "x"}):
        details = client.refused(
            400, "INVALID_PARAMS", "create_document", document_id="x", **CREATE | {"content": content}
        )
        assert details[0]["field"].startswith("content.")
    for mime_type in ("text/markdown", "text/plain", "application/json"):
        content = {"mime_type": mime_type, "body": '{"a": 1}'}
        client.ok(
            "create_document", document_id=client.name(mime_type.replace("/", "-")), **CREATE | {"content": content}
        )


def test_update_document(client: Client) -> None:
    document_id = str(uuid4())
    client.ok("create_document", document_id=document_id, **CREATE)
    for number in range(11):
        client.ok("update_document", document_id=document_id, patch={"metadata": {"n": number}})
    updated = client.ok("update_document", document_id=document_id, last_known_revision=12, **UPDATE)
    assert updated["revision"] == 13
    details = client.refused(
        409, "CONFLICT", "update_document", document_id=document_id, last_known_revision=12, **UPDATE
    )
    assert details["current_revision"] == 13
    document = client.ok("get_document", document_id=document_id)
    assert {name: document[name] for name in UPDATE["patch"]} == UPDATE["patch"]
    assert document["created_at"] == CREATE["created_at"]


def test_find_documents(client: Client) -> None:
    document_id = str(uuid4())
    client.ok("create_document", document_id=document_id, **CREATE | {"metadata": {"title": f"Lộ trình {client.own}"}})
    (document,) = client.ok("find_documents", query=f"lo TRI {client.own}")["documents"]
    assert (document["document_id"], document["parent_id"]) == (document_id, "root")
    assert client.ok("find_documents", query=f"moss {client.own}") == {"documents": []}
    client.refused(400, "INVALID_PARAMS", "find_documents", metadata={"source": "cursor"})


def test_edit_document(client: Client) -> None:
    document_id = str(uuid4())
    client.ok("create_document", document_id=document_id, **CREATE)
    edits = [{"append": "\nMới"}, {"metadata": {"source": None}}]
    edited = client.ok("edit_document", document_id=document_id, edits=edits)
    assert (edited["revision"], edited["changes"]) == (2, "appended lines 2-3; metadata: removed source")
    wrong = [{"append": "x"}, {"replace": {"old": "n", "new": "x"}}]
    details = client.refused(409, "NO_SINGLE_MATCH", "edit_document", document_id=document_id, edits=wrong)
    assert [each["line"] for each in details["candidates"]] == [1, 1, 2, 2, 2]
    document = client.ok("get_document", document_id=document_id)
    assert document["content"]["body"] == "# Introduction\nNội dung văn bản...\nMới"
    assert (document["revision"], "source" in document["metadata"]) == (2, False)
    assert client.ok("edit_document", document_id=document_id, edits=[{"restore_revision": 1}])["revision"] == 3
    assert client.ok("get_document", document_id=document_id)["metadata"] == CREATE["metadata"]
    entry = client.ok("document_history", document_id=document_id)["history"][1]
    assert (entry["action"], entry["changes"]) == ("edit_document", edited["changes"])


def test_delete_document(client: Client) -> None:
    document_id = str(uuid4())
    client.ok("create_document", document_id=document_id, **CREATE)
    answer = client.ok("delete_document", document_id=document_id, **DELETE)
    assert (answer["deleted"], answer["delete_at"]) == (True, DELETE["delete_at"])
    client.refused(404, "NOT_FOUND", "get_document", document_id=document_id)
    entry = client.ok("document_history", document_id=document_id)["history"][-1]
    assert (entry["action"], entry["from_revision"], entry["reason"]) == ("delete_document", 1, "retired")
    assert (entry["deleted_by"], entry["delete_at"]) == ("cursor-agent", DELETE["delete_at"])
    assert client.ok("restore_document", document_id=document_id)["deleted"] is False
    assert client.ok("get_document", document_id=document_id)["content"] == CREATE["content"]
    late = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    assert client.ok("delete_document", document_id=document_id, delete_at=late)["deleted"] is False
    assert client.ok("get_document", document_id=document_id)["revision"] == 4
    soon = (datetime.now(UTC) + timedelta(seconds=0.5)).isoformat()
    client.ok("delete_document", document_id=document_id, delete_at=soon)
    until(lambda: client("get_document", document_id=document_id)[0] == 404)
    assert datetime.now(UTC) >= datetime.fromisoformat(soon)


def test_move_document(client: Client) -> None:
    strategy, legacy = client.name("collection-strategy"), client.name("doc-legacy-002")
    client.ok("create_document", document_id=strategy, **CREATE)
    for name in (client.name("doc-legacy-001"), legacy):
        client.ok("create_document", document_id=name, **CREATE | {"parent_id": strategy})
    document_id = str(uuid4())
    client.ok("create_document", document_id=document_id, **CREATE)
    position = {"ordering": 3, "before": legacy}
    moved = client.ok("move_document", document_id=document_id, new_parent_id=strategy, position=position)
    assert (moved["parent_id"], moved["revision"]) == (strategy, 2)
    children = client.ok("list_children", parent_id=strategy)["children"]
    assert [each["document_id"] for each in children] == [client.name("doc-legacy-001"), document_id, legacy]
    client.ok("move_document", document_id=document_id, new_parent_id=strategy)
    children = client.ok("list_children", parent_id=strategy)["children"]
    assert children[-1]["document_id"] == document_id, "without a position: last"
    client.refused(409, "CYCLE", "move_document", document_id=strategy, new_parent_id=document_id)
    client.refused(409, "CYCLE", "move_document", document_id=strategy, new_parent_id=strategy)


def test_contract_requests_verbatim(server: KhoServer) -> None:
    """With the ids and the tenant of the contract's example."""
    client = Client(server, "actions")
    for name, parent in (("collection-strategy", "root"), ("doc-legacy-002", "collection-strategy")):
        client.ok("create_document", document_id=name, **CREATE | {"parent_id": parent})
    client.ok("create_document", document_id="uuid-v4", **CREATE)
    client.ok("move_document", document_id="uuid-v4", **MOVE)
    children = client.ok("list_children", parent_id="collection-strategy")["children"]
    assert [each["document_id"] for each in children] == ["uuid-v4", "doc-legacy-002"]
    client.ok("update_document", document_id="uuid-v4", **UPDATE)
    client.ok("delete_document", document_id="uuid-v4", **DELETE)


def test_repeated_request_id(client: Client) -> None:
    payload = {"document_id": client.name("once"), **CREATE}
    status, first = client.send("create_document", payload, "request-1" + client.own)
    again = client.send("create_document", payload, "request-1" + client.own)
    assert (status, again) == (200, (200, first | {"replayed": True}))
    status, body = client.send("create_document", payload | {"parent_id": "no"}, "request-1" + client.own)
    assert (status, body["error"]["code"], body["request_id"]) == (
        409,
        "IDEMPOTENCY_MISMATCH",
        "request-1" + client.own,
    )


def test_large_document_bodies_pass_the_endpoints(client: Client) -> None:
    # Large for the endpoints and the store, with almost nothing to embed.
    body = "Đường dài\n" + "\u2003" * (2 * 1024 * 1024 // 3 - 10)
    document_id = client.name("large")
    client.ok("create_document", document_id=document_id, **CREATE | {"content": {"body": body}})
    assert client.ok("get_document", document_id=document_id)["content"]["body"] == body


def post(server: KhoServer, body: Any) -> tuple[int, Any]:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    response = server.post("/actions", raw)
    return response.status, json.loads(response.data)


def test_actions_envelope(server: KhoServer) -> None:
    good = envelope("list_children", {}, "r-1", "t-1")
    assert post(server, good) == (200, {"children": [], "request_id": "r-1"})
    assert post(server, {"action": "list_children", "payload": {"parent_id": "root", "limit": 1}})[0] == 200
    for wrong, field in (
        (good | {"surprise": 1}, "surprise"),
        (good | {"payload": []}, "payload"),
        (good | {"action": 1}, "action"),
        ({name: value for name, value in good.items() if name != "payload"}, "payload"),
        (good | {"request_id": "two words"}, "request_id"),
        (good | {"principal": {"sub": 1}}, "principal.sub"),
        (good | {"principal": {"tenant_id": "a#b"}}, "principal.tenant_id"),
        (good | {"principal": {"groups": []}}, "principal.groups"),
        (good | {"payload": {"request_id": "r-2"}}, "payload.request_id"),
        (good | {"payload": {"surprise": 1}}, "surprise"),
        (good | {"payload": {"limit": 0}}, "limit"),
    ):
        status, body = post(server, wrong)
        assert (status, body["error"]["code"]) == (400, "INVALID_PARAMS"), body
        assert [each["field"] for each in body["error"]["details"]] == [field]
        assert body.get("request_id") == wrong.get("request_id")
    for raw, code in ((b"{", "PARSE_ERROR"), (b"\xff", "PARSE_ERROR"), (b"[]", "INVALID_PARAMS")):
        status, body = post(server, raw)
        assert (status, body["error"]["code"]) == (400, code)
    for action in ("no_such", "", "../health", "memory/add_message", "create_document/"):
        status, body = post(server, good | {"action": action})
        assert (status, body["error"]["code"]) == ((404, "METHOD_NOT_FOUND") if action else (400, "INVALID_PARAMS"))
        assert body["request_id"] == "r-1"


def test_open_server_trusts_the_principal(server: KhoServer) -> None:
    mine, theirs = Client(server, "actions"), Client(server, "actions")
    mine.ok("create_document", document_id="a", **CREATE)
    theirs.refused(404, "NOT_FOUND", "get_document", document_id="a")
    assert theirs.ok("list_children") == {"children": []}
    theirs.ok("create_document", document_id="a", **CREATE)
    entry = mine.ok("document_history", document_id="a")["history"][0]
    assert entry["by"] == {"sub": "service-account@example.com", "labels": ["cursor", "codex"]}
    assert len(entry["correlation_id"]) >= 8
    named = post(server, {"action": "list_children", "payload": {}})[1]
    assert named["children"] == json.loads(server.post("/agent-data/list_children", b"{}").data)["children"]
