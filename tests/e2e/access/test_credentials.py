"""Keys and tokens that are accepted or rejected."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import boto3
import urllib3

from infra.local.data_folder import read_server_info
from tests.helpers.api_client import ApiClient, make_key, run_kho
from tests.helpers.dynamodb import tcp_url
from tests.helpers.identity_provider import unsigned_token
from tests.helpers.unauthorized import ADD, LIST, MESSAGE, assert_unauthorized

if TYPE_CHECKING:
    from tests.helpers.identity_provider import IdentityProvider
    from tests.helpers.kho_server import KhoServer


def test_invalid_keys_are_rejected(guarded: KhoServer) -> None:
    key = make_key(guarded.data, "wrong-keys", "admin")["key"]
    for wrong in (key[:-1], key[:-1] + ("0" if key[-1] != "0" else "1"), "nonsense", "kho_", key.upper()):
        assert_unauthorized(ApiClient(guarded, wrong))
    assert_unauthorized(ApiClient(guarded, f"{key}, Bearer {key}"))


def test_revoked_key_is_rejected(guarded: KhoServer) -> None:
    key = make_key(guarded.data, "revoked", "admin")
    done = run_kho("keys", "revoke", key["id"], "--data", str(guarded.data))
    assert done.returncode == 0, done.stderr
    assert_unauthorized(ApiClient(guarded, key["key"]))


def test_authorizer_does_not_cache_revoked_keys(guarded: KhoServer) -> None:
    """A deployed gateway caches answers for the minute that a revoked key may live. Here only that minute counts."""
    key = make_key(guarded.data, "remembered", "admin")
    client = ApiClient(guarded, key["key"])
    assert client.direct(LIST)[0] == 200
    run_kho("keys", "revoke", key["id"], "--data", str(guarded.data))
    assert client.direct(LIST)[0] == 401


def test_expired_key_is_rejected(guarded: KhoServer) -> None:
    key = make_key(guarded.data, "expired", "admin", "--expires-in-days", "1")
    assert ApiClient(guarded, key["key"]).direct(LIST)[0] == 200
    running = read_server_info(guarded.data)
    assert running
    anyone = boto3.Session("local", "local", region_name="us-east-1")
    anyone.client("dynamodb", endpoint_url=tcp_url(running["store_url"])).update_item(
        TableName="kho-AccessTable",
        Key={"pk": {"S": "keys"}, "sk": {"S": key["id"]}},
        UpdateExpression="SET expires_at = created_at",
    )
    assert_unauthorized(ApiClient(guarded, key["key"]))


def test_valid_tokens_are_accepted(guarded: KhoServer, provider: IdentityProvider) -> None:
    writer = ApiClient(guarded, provider.token(tenant_id="by-token"))
    assert writer.direct(ADD, **MESSAGE)[0] == 200
    assert writer.jsonrpc(ADD, **MESSAGE)[1]["result"]["status"] == "success"
    reader = ApiClient(guarded, provider.token(tenant_id="by-token", roles=["reader"], sub="user-2"))
    assert len(reader.result("memory-server/memory/get_all_messages", conversation_id="chat")["messages"]) == 2
    assert reader.direct(ADD, **MESSAGE)[0] == 403
    without_roles = ApiClient(guarded, provider.token(tenant_id="by-token", roles=[]))
    assert without_roles.direct(LIST)[0] == 403
    key = ApiClient(guarded, make_key(guarded.data, "by-token", "reader")["key"])
    assert key.result(LIST) == reader.result(LIST), "one tenant for both kinds of credentials"


def test_invalid_tokens_are_rejected(guarded: KhoServer, provider: IdentityProvider) -> None:
    public = provider.keys["rsa"].as_pem(private=False)
    hour = 3600
    wrong = {
        "alg none": unsigned_token({"alg": "none", "kid": "rsa"}, provider.claims()),
        "HS256 with the public key": unsigned_token({"alg": "HS256", "kid": "rsa"}, provider.claims(), secret=public),
        "another audience": provider.token(aud="other"),
        "another issuer": provider.token(iss="https://evil.example"),
        "expired": provider.token(exp=int(time.time()) - hour),
        "not yet valid": provider.token(nbf=int(time.time()) + hour),
        "no tenant": provider.token(tenant_id=None),
        "broken": provider.token()[:-4] + "AAAA",
    }
    for name, token in wrong.items():
        with_name = ApiClient(guarded, token)
        assert (name, with_name.direct(LIST)[0]) == (name, 401)
        assert_unauthorized(with_name)


def test_host_header_is_not_checked_when_keys_are_required(guarded: KhoServer) -> None:
    """Under its own host name, a server with keys answers. One without keys does not, because of DNS rebinding."""
    key = make_key(guarded.data, "named", "reader")["key"]
    pool = urllib3.PoolManager(retries=False)
    headers = {"host": "kho.example", "authorization": f"Bearer {key}", "content-type": "application/json"}
    assert pool.request("POST", f"{guarded.address}/{LIST}", body=b"{}", headers=headers).status == 200
