"""agent-data's `principal` field: it may repeat the key's identity, but proves nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.helpers.api_client import ApiClient, make_key

if TYPE_CHECKING:
    from tests.helpers.kho_server import KhoServer


@pytest.fixture(scope="module")
def cursor(guarded: KhoServer) -> ApiClient:
    """Return the service account of agent-data's example."""
    key = make_key(guarded.data, "tenant-asia-01", "reader", "--name", "service-account@example.com")
    return ApiClient(guarded, key["key"])


@pytest.mark.parametrize(
    "principal",
    [
        {"sub": "service-account@example.com", "roles": ["cursor", "codex"], "tenant_id": "tenant-asia-01"},
        {"sub": "service-account@example.com"},
        {"tenant_id": "tenant-asia-01"},
        {"roles": []},
        {},
    ],
)
def test_principal_may_repeat_the_keys_identity(cursor: ApiClient, principal: dict[str, Any]) -> None:
    status, body = cursor.act({"action": "list_children", "principal": principal, "payload": {}})
    assert (status, body) == (200, {"children": []})


@pytest.mark.parametrize(
    "principal",
    [
        {"sub": "service-account@example.com", "tenant_id": "tenant-asia-02"},
        {"sub": "another@example.com", "tenant_id": "tenant-asia-01"},
        {"sub": "another@example.com"},
        {"tenant_id": "local"},
    ],
)
def test_principal_of_another_tenant_is_rejected(cursor: ApiClient, principal: dict[str, Any]) -> None:
    status, body = cursor.act({"action": "list_children", "principal": principal, "payload": {}})
    assert (status, body["error"]["code"]) == (403, "NOT_ALLOWED")


def test_roles_of_a_principal_grant_nothing(cursor: ApiClient) -> None:
    payload = {"document_id": "d", "parent_id": "root", "content": {"body": "x"}}
    principal = {"roles": ["admin", "writer"]}
    status, body = cursor.act({"action": "create_document", "principal": principal, "payload": payload})
    assert (status, body["error"]["details"]) == (403, {"needed": "writer", "held": ["reader"]})


@pytest.mark.parametrize("credential", [None, "nonsense"])
def test_principal_does_not_authenticate(guarded: KhoServer, credential: str | None) -> None:
    envelope = {"action": "list_children", "principal": {"tenant_id": "tenant-asia-01"}, "payload": {}}
    status, body = ApiClient(guarded, credential).act(envelope)
    assert (status, body["error"]["code"]) == (401, "NOT_SIGNED_IN")
