"""What a role opens, what nobody without credentials has, and what everyone may know."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from shared.rpc.caller import ROLES
from shared.rpc.catalogue import catalogue
from tests.e2e.access.doors import ADD, LIST, MESSAGE
from tests.e2e.guarded import Client, make_key

if TYPE_CHECKING:
    from tests.e2e.server import Server


@pytest.mark.parametrize("role", ROLES)
def test_a_key_opens_what_its_role_includes(guarded: Server, role: str) -> None:
    client = Client(guarded, make_key(guarded.data, f"roles-{role}", role)["key"])
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


NOT_FOR_EVERYONE = [entry for _, entry in sorted(catalogue().methods.items()) if not entry.anonymous]


@pytest.mark.parametrize("method", [entry.name for entry in NOT_FOR_EVERYONE])
def test_no_method_serves_those_without_credentials(guarded: Server, method: str) -> None:
    anonymous = Client(guarded, None)
    status, body = anonymous.direct(method)
    assert (status, body) == (401, {"message": "Unauthorized"}), "the gateway's own words"
    status, body = anonymous.jsonrpc(method)
    assert (status, body["error"]["code"]) == (401, "NOT_SIGNED_IN")


def test_what_serves_everyone_is_what_seed_003_promises() -> None:
    everyones = set(catalogue().methods) - {entry.name for entry in NOT_FOR_EVERYONE}
    assert everyones == {f"recall-kit/{name}" for name in ("get_experience", "query_experiences", "submit_experience")}


@pytest.fixture(scope="module")
def reader(guarded: Server) -> Client:
    return Client(guarded, make_key(guarded.data, "reading", "reader")["key"])


@pytest.mark.parametrize("method", [entry.name for entry in NOT_FOR_EVERYONE if entry.role != "reader"])
def test_a_readers_key_changes_nothing(reader: Client, method: str) -> None:
    """Its role is looked at before its parameters are."""
    status, body = reader.direct(method)
    assert (status, body["error"]["code"]) == (403, "NOT_ALLOWED")
    status, body = reader.jsonrpc(method)
    if method.startswith("recall-kit/"):
        assert (status, body["result"]["error"]["code"]) == (200, "NOT_ALLOWED")  # its seed's object at every door
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
def test_where_the_action_decides_a_readers_key_changes_nothing(
    reader: Client, method: str, params: dict[str, Any]
) -> None:
    status, body = reader.direct(f"research-agent/{method}", **params)
    assert (status, body["error"]["code"]) == (403, "NOT_ALLOWED")


@pytest.mark.parametrize("body", [b"{", b"[]", b"[1]", b'{"jsonrpc": "2.0", "method": "no/such"}', b"\xff"])
def test_the_jsonrpc_door_answers_nothing_to_the_unknown(guarded: Server, body: bytes) -> None:
    response = guarded.post("/jsonrpc", body)
    assert (response.status, json.loads(response.data)["error"]["code"]) == (401, "NOT_SIGNED_IN")


@pytest.mark.parametrize("path", ["/health", "/servers", "/servers/memory-server/capabilities", "/openapi.json"])
def test_what_the_system_is_anyone_may_know(guarded: Server, path: str) -> None:
    assert guarded.get(path).status == 200
    assert guarded.get(path, authorization="Bearer nonsense").status == 200
