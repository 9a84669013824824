"""Keys and tokens that are taken, and ones that are not."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import boto3
import urllib3

from infra.local.folder import serving
from tests.e2e.access.doors import ADD, LIST, MESSAGE, assert_refused
from tests.e2e.guarded import Client, kho, make_key
from tests.identity_provider import unsigned

if TYPE_CHECKING:
    from tests.e2e.server import Server
    from tests.identity_provider import IdentityProvider


def test_wrong_keys_are_refused(guarded: Server) -> None:
    key = make_key(guarded.data, "wrong-keys", "admin")["key"]
    for wrong in (key[:-1], key[:-1] + ("0" if key[-1] != "0" else "1"), "nonsense", "kho_", key.upper()):
        assert_refused(Client(guarded, wrong))
    assert_refused(Client(guarded, f"{key}, Bearer {key}"))


def test_a_revoked_key_is_refused(guarded: Server) -> None:
    key = make_key(guarded.data, "revoked", "admin")
    done = kho("keys", "revoke", key["id"], "--data", str(guarded.data))
    assert done.returncode == 0, done.stderr
    assert_refused(Client(guarded, key["key"]))


def test_the_authorizer_remembers_no_revoked_key(guarded: Server) -> None:
    """Deployed, the gateway caches its answers for the minute that a revoked key may live: here is no second one."""
    key = make_key(guarded.data, "remembered", "admin")
    client = Client(guarded, key["key"])
    assert client.direct(LIST)[0] == 200
    kho("keys", "revoke", key["id"], "--data", str(guarded.data))
    assert client.direct(LIST)[0] == 401


def test_an_expired_key_is_refused(guarded: Server) -> None:
    key = make_key(guarded.data, "expired", "admin", "--expires-in-days", "1")
    assert Client(guarded, key["key"]).direct(LIST)[0] == 200
    running = serving(guarded.data)
    assert running
    anyone = boto3.Session("local", "local", region_name="us-east-1")
    anyone.client("dynamodb", endpoint_url=running["store_url"]).update_item(
        TableName="kho-AccessTable",
        Key={"pk": {"S": "keys"}, "sk": {"S": key["id"]}},
        UpdateExpression="SET expires_at = created_at",
    )
    assert_refused(Client(guarded, key["key"]))


def test_tokens_are_taken(guarded: Server, provider: IdentityProvider) -> None:
    writer = Client(guarded, provider.token(tenant_id="by-token"))
    assert writer.direct(ADD, **MESSAGE)[0] == 200
    assert writer.jsonrpc(ADD, **MESSAGE)[1]["result"]["status"] == "success"
    reader = Client(guarded, provider.token(tenant_id="by-token", roles=["reader"], sub="user-2"))
    assert len(reader.result("memory-server/memory/get_all_messages", conversation_id="chat")["messages"]) == 2
    assert reader.direct(ADD, **MESSAGE)[0] == 403
    nobody = Client(guarded, provider.token(tenant_id="by-token", roles=[]))
    assert nobody.direct(LIST)[0] == 403
    key = Client(guarded, make_key(guarded.data, "by-token", "reader")["key"])
    assert key.result(LIST) == reader.result(LIST), "one tenant, whatever the credentials"


def test_wrong_tokens_are_refused(guarded: Server, provider: IdentityProvider) -> None:
    public = provider.keys["rsa"].as_pem(private=False)
    hour = 3600
    wrong = {
        "alg none": unsigned({"alg": "none", "kid": "rsa"}, provider.claims()),
        "HS256 with the public key": unsigned({"alg": "HS256", "kid": "rsa"}, provider.claims(), secret=public),
        "another audience": provider.token(aud="other"),
        "another issuer": provider.token(iss="https://evil.example"),
        "expired": provider.token(exp=int(time.time()) - hour),
        "not yet valid": provider.token(nbf=int(time.time()) + hour),
        "no tenant": provider.token(tenant_id=None),
        "broken": provider.token()[:-4] + "AAAA",
    }
    for name, token in wrong.items():
        with_name = Client(guarded, token)
        assert (name, with_name.direct(LIST)[0]) == (name, 401)
        assert_refused(with_name)


def test_with_keys_the_host_name_does_not_matter(guarded: Server) -> None:
    """Behind a name of its own, a server with keys answers; one without keys does not, for fear of DNS rebinding."""
    key = make_key(guarded.data, "named", "reader")["key"]
    pool = urllib3.PoolManager(retries=False)
    headers = {"host": "kho.example", "authorization": f"Bearer {key}", "content-type": "application/json"}
    assert pool.request("POST", f"{guarded.address}/{LIST}", body=b"{}", headers=headers).status == 200
