"""Methods that each role may call, and methods that need no credentials."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from shared.rpc.caller import ROLES
from shared.rpc.catalogue import catalogue
from tests.helpers.api_client import ApiClient, make_key
from tests.helpers.unauthorized import ADD, LIST, MESSAGE

if TYPE_CHECKING:
    from tests.helpers.kho_server import KhoServer


@pytest.mark.parametrize("role", ROLES)
def test_key_permits_what_its_role_includes(guarded: KhoServer, role: str) -> None:
    client = ApiClient(guarded, make_key(guarded.data, f"roles-{role}", role)["key"])
    assert client.direct(LIST)[0] == client.jsonrpc(LIST)[0] == 200
    may_write = role != "reader"
    status, body = client.direct(ADD, **MESSAGE)
    rpc_status, rpc_body = client.jsonrpc(ADD, **MESSAGE)
    assert status == (200 if may_write else 403)
    assert rpc_status == 200
    if not may_write:
        assert body["error"]["code"] == rpc_body["error"]["data"]["code"] == "NOT_ALLOWED"
        assert body["error"]["details"] == {"needed": "writer", "held": ["reader"]}
        assert rpc_body["error"]["code"] == 403
        assert client.result(LIST)["resources"] == [], "nothing was written"


PROTECTED = [entry for _, entry in sorted(catalogue().methods.items()) if not entry.anonymous]


@pytest.mark.parametrize("method", [entry.name for entry in PROTECTED])
def test_methods_require_credentials(guarded: KhoServer, method: str) -> None:
    anonymous = ApiClient(guarded, None)
    status, body = anonymous.direct(method)
    assert (status, body["error"]["code"]) == (401, "NOT_SIGNED_IN")
    status, body = anonymous.jsonrpc(method)
    assert (status, body["id"], body["error"]["code"]) == (401, 1, 401)


def test_anonymous_methods_are_those_of_recall_kit() -> None:
    public = set(catalogue().methods) - {entry.name for entry in PROTECTED}
    assert public == {f"recall-kit/{name}" for name in ("get_experience", "query_experiences", "submit_experience")}


@pytest.fixture(scope="module")
def reader(guarded: KhoServer) -> ApiClient:
    return ApiClient(guarded, make_key(guarded.data, "reading", "reader")["key"])


@pytest.mark.parametrize("method", [entry.name for entry in PROTECTED if entry.role != "reader"])
def test_reader_key_cannot_write(reader: ApiClient, method: str) -> None:
    """The role is checked before the parameters."""
    status, body = reader.direct(method)
    assert (status, body["error"]["code"]) == (403, "NOT_ALLOWED")
    status, body = reader.jsonrpc(method)
    if method.startswith("recall-kit/"):
        assert (status, body["result"]["error"]["code"]) == (200, "NOT_ALLOWED")  # as in the contract, at any endpoint
    else:
        assert (status, body["error"]["code"]) == (200, 403)


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("manage_collections", {"action": "create", "collection_name": "c"}),
        ("manage_collections", {"action": "delete", "collection_name": "c"}),
        *(
            ("manage_projects", {"action": action, "project_name": "p", "collections": "c"})
            for action in ("create", "link", "unlink", "set-defaults")
        ),
    ],
)
def test_reader_key_cannot_use_writing_actions(reader: ApiClient, method: str, params: dict[str, Any]) -> None:
    status, body = reader.direct(f"research-agent/{method}", **params)
    assert (status, body["error"]["code"]) == (403, "NOT_ALLOWED")


@pytest.mark.parametrize("body", [b"{", b"[]", b"[1]", b'{"jsonrpc": "2.0", "method": "no/such"}', b"\xff"])
def test_jsonrpc_endpoint_rejects_anonymous_callers(guarded: KhoServer, body: bytes) -> None:
    response = guarded.post("/jsonrpc", body)
    answers = json.loads(response.data)
    error = (answers[0] if isinstance(answers, list) else answers)["error"]
    assert (response.status, error["code"], error["data"]["code"]) == (401, 401, "NOT_SIGNED_IN")


@pytest.mark.parametrize("path", ["/health", "/servers", "/servers/memory-server/capabilities", "/openapi.json"])
def test_system_description_is_public(guarded: KhoServer, path: str) -> None:
    assert guarded.get(path).status == 200
    assert guarded.get(path, authorization="Bearer nonsense").status == 200
