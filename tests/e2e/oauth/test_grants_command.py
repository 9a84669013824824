"""`kho grants`, and grants in `kho keys` and `kho tenant`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from tests.helpers.api_client import make_key, run_kho

if TYPE_CHECKING:
    from tests.helpers.kho_server import KhoServer
    from tests.helpers.oauth_person import Person


def new_grant(server: KhoServer, person: Person) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Return a new tenant, its key and the tokens of a grant that the key has signed."""
    tenant = f"grants-{uuid4().hex}"
    key = make_key(server.data, tenant, "writer", "--name", "lan")
    person.client.register(client_name="Notes")
    return tenant, key, person.client.tokens(key["key"])


def kho(server: KhoServer, *arguments: str) -> Any:
    """Return the JSON of a command on the server's data."""
    done = run_kho(*arguments, "--data", str(server.data), "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_grants_are_listed_and_revoked(guarded: KhoServer, person: Person) -> None:
    tenant, key, tokens = new_grant(guarded, person)
    (grant,) = (each for each in kho(guarded, "grants", "list")["grants"] if each["tenant_id"] == tenant)
    assert grant["client_name"] == "Notes"
    assert (grant["role"], grant["sub"], grant["key_id"], grant["state"]) == ("writer", "lan", key["id"], "active")
    assert grant["resource"] == f"{guarded.address}/mcp"
    assert kho(guarded, "keys", "list", "--tenant", tenant)["keys"][0]["grants"] == 1
    table = run_kho("grants", "list", "--tenant", tenant, "--data", str(guarded.data)).stdout
    assert "Notes" in table
    for token in tokens.values():
        assert str(token) not in table or len(str(token)) < 20
    wrong = run_kho("grants", "revoke", grant["id"], "--tenant", "another", "--data", str(guarded.data))
    assert wrong.returncode == 1
    assert "kho grants list" in wrong.stderr
    assert kho(guarded, "grants", "revoke", grant["id"], "--tenant", tenant)["state"] == "revoked"
    assert person.client.refresh(tokens["refresh_token"]).json["error"] == "invalid_grant"
