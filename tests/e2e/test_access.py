"""`kho serve --auth required`: who is let in, who is not, and how each is told."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import time
from typing import TYPE_CHECKING, Any

import boto3
import pytest
import urllib3

from infra.local.folder import serving
from shared.rpc.caller import ROLES
from shared.rpc.catalogue import catalogue
from tests.deployed import deployed
from tests.e2e.guarded import Client, kho, make_key
from tests.e2e.server import Server
from tests.identity_provider import unsigned

if TYPE_CHECKING:
    from pathlib import Path

    from tests.identity_provider import IdentityProvider

ADD = "memory-server/memory/add_message"
LIST = "memory-server/resources/list"
MESSAGE = {"conversation_id": "chat", "role": "user", "content": "x"}


def assert_refused(client: Client) -> None:
    """Every door says 401 in the contract's body, and how to sign in."""
    for path, body in ((f"/{LIST}", {}), ("/jsonrpc", {"jsonrpc": "2.0", "method": LIST, "id": 1})):
        response = client.server.post(path, json.dumps(body).encode(), **client.headers)
        assert response.status == 401, (path, response.data)
        assert response.headers["www-authenticate"] == "Bearer"
        assert set(json.loads(response.data)) == {"error"}
        assert json.loads(response.data)["error"]["code"] == "NOT_SIGNED_IN"


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


@pytest.fixture(scope="module")
def cursor(guarded: Server) -> Client:
    """Seed 000's service account."""
    made = make_key(guarded.data, "tenant-asia-01", "reader", "--name", "service-account@example.com")
    return Client(guarded, made["key"])


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
def test_a_principal_may_say_what_the_key_says(cursor: Client, principal: dict[str, Any]) -> None:
    status, body = cursor.act({"action": "list_children", "principal": principal, "payload": {}})
    assert (status, body) == (200, {"children": []})


@pytest.mark.parametrize(
    "principal",
    [
        {"sub": "service-account@example.com", "tenant_id": "tenant-asia-02"},
        {"sub": "somebody-else@example.com", "tenant_id": "tenant-asia-01"},
        {"sub": "somebody-else@example.com"},
        {"tenant_id": "local"},
    ],
)
def test_a_principal_of_another_is_refused(cursor: Client, principal: dict[str, Any]) -> None:
    status, body = cursor.act({"action": "list_children", "principal": principal, "payload": {}})
    assert (status, body["error"]["code"]) == (403, "NOT_ALLOWED")


def test_a_principals_roles_grant_nothing(cursor: Client) -> None:
    payload = {"document_id": "d", "parent_id": "root", "content": {"body": "x"}}
    principal = {"roles": ["admin", "writer"]}
    status, body = cursor.act({"action": "create_document", "principal": principal, "payload": payload})
    assert (status, body["error"]["details"]) == (403, {"needed": "writer", "held": ["reader"]})


@pytest.mark.parametrize("credential", [None, "nonsense"])
def test_a_principal_proves_nothing(guarded: Server, credential: str | None) -> None:
    envelope = {"action": "list_children", "principal": {"tenant_id": "tenant-asia-01"}, "payload": {}}
    status, body = Client(guarded, credential).act(envelope)
    assert (status, body["error"]["code"]) == (401, "NOT_SIGNED_IN")


def test_keys_are_made_listed_and_revoked_with_and_without_a_server(tmp_path: Path) -> None:
    data = tmp_path / "data"
    before = make_key(data, "t-1", "writer", "--name", "robot", "--expires-in-days", "30")
    assert re.fullmatch(r"kho_[0-9a-f]{16}_[0-9a-f]{64}", before["key"])
    with Server(data, "--auth", "required") as server:
        meanwhile = make_key(data, "t-2", "reader")
        assert Client(server, before["key"]).direct(ADD, **MESSAGE)[0] == 200
        assert Client(server, meanwhile["key"]).result(LIST) == {"resources": []}
        server.kill()
        server.start()
        assert Client(server, before["key"]).result(LIST)["resources"]
        make_key(data, "t-2", "reader")
    listed = json.loads(kho("keys", "list", "--data", str(data), "--json").stdout)["keys"]
    assert [(each["tenant_id"], each["role"], each["state"]) for each in listed] == [
        ("t-1", "writer", "active"),
        ("t-2", "reader", "active"),
        ("t-2", "reader", "active"),
    ]
    assert listed[0] | {"key": before["key"]} == before
    shown = kho("keys", "list", "--data", str(data), "--tenant", "t-1").stdout
    assert [line.split()[0] for line in shown.splitlines()] == ["id", before["id"]]
    assert before["key"].rpartition("_")[2] not in shown
    assert "is revoked since" in kho("keys", "revoke", before["id"], "--data", str(data)).stdout
    assert "revoked" in kho("keys", "list", "--data", str(data), "--tenant", "t-1").stdout
    assert all(before["key"].rpartition("_")[2] not in file.read_text("latin-1") for file in data.iterdir())


def test_keys_of_a_deployed_stack_take_ones_own_credentials(guarded: Server) -> None:
    running = serving(guarded.data)
    assert running
    nobody = {"AWS_EC2_METADATA_DISABLED": "true", "AWS_SHARED_CREDENTIALS_FILE": "/nowhere", "AWS_REGION": "us-east-1"}
    with deployed("kho", {"KHO_ACCESS_TABLE": "kho-AccessTable"}) as functions:
        signed_in = nobody | {
            "AWS_ACCESS_KEY_ID": "local",
            "AWS_SECRET_ACCESS_KEY": "local",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ENDPOINT_URL_DYNAMODB": running["store_url"],
            "AWS_ENDPOINT_URL_LAMBDA": functions,
        }
        create = ["keys", "create", "--stack", "kho", "--tenant", "deployed", "--role", "reader", "--json"]
        made = kho(*create, environment=signed_in)
        missing = kho("keys", "list", "--stack", "other", environment=signed_in)
        unknown = kho(*create, environment=nobody)
    assert made.returncode == 0, made.stderr
    assert Client(guarded, json.loads(made.stdout)["key"]).direct(LIST)[0] == 200
    assert missing.returncode == 1
    assert "There is no stack 'other' of Kho in us-east-1" in missing.stderr
    assert unknown.returncode == 1
    assert "No AWS credentials" in unknown.stderr
    assert "Traceback" not in missing.stderr + unknown.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["create", "--tenant", "a#b", "--role", "reader"], "cannot be a tenant"),
        (["create", "--tenant", "", "--role", "reader"], "cannot be a tenant"),
        (["create", "--tenant", "a", "--role", "king"], "Invalid value"),
        (["create", "--tenant", "a", "--role", "reader", "--expires-in-days", "0"], "Must be >= 1"),
        (["create", "--tenant", "a", "--role", "reader", "--name", "a\nb"], "printable"),
        (["revoke", "0123456789abcdef"], "No key has this id"),
        (["revoke", "nonsense"], "No key has this id"),
    ],
)
def test_wrong_arguments_are_said(tmp_path: Path, arguments: list[str], said: str) -> None:
    done = kho("keys", *arguments, "--data", str(tmp_path))
    assert done.returncode != 0
    assert said in done.stderr + done.stdout
    assert "Traceback" not in done.stderr
    listed: Any = json.loads(kho("keys", "list", "--data", str(tmp_path), "--json").stdout)
    assert listed == {"keys": []}


@pytest.mark.parametrize(
    ("environment", "named"),
    [
        ({"KHO_OIDC_ISSUER": "http://login.example"}, "KHO_OIDC_ISSUER"),
        ({"KHO_OIDC_ISSUER": "https://login.example"}, "KHO_OIDC_AUDIENCE"),
        ({"KHO_OIDC_JWKS_URL": "ftp://login.example/keys"}, "KHO_OIDC_JWKS_URL"),
    ],
)
def test_wrong_settings_are_named(tmp_path: Path, environment: dict[str, str], named: str) -> None:
    done = kho("serve", "--port", "0", "--mqtt-port", "0", "--data", str(tmp_path), environment=environment)
    assert done.returncode == 1
    assert named in done.stderr
    assert "Traceback" not in done.stderr


def test_the_first_lines_lead_to_a_call_that_works(guarded: Server) -> None:
    printed = guarded.printed().splitlines()
    making = next(line.partition("kho keys ")[2] for line in printed if "kho keys create" in line)
    made = kho("keys", *shlex.split(making.replace("<name>", "newcomer")))
    key = next(line.strip() for line in made.stdout.splitlines() if line.startswith("  kho_"))
    curl = next(line.strip() for line in printed if line.strip().startswith("curl "))
    done = subprocess.run(curl.replace("<key>", key), shell=True, capture_output=True, check=True)
    assert json.loads(done.stdout)["result"]["conversation_id"].startswith("chat_")


def test_with_keys_the_host_name_does_not_matter(guarded: Server) -> None:
    """Behind a name of its own, a server with keys answers; one without keys does not, for fear of DNS rebinding."""
    key = make_key(guarded.data, "named", "reader")["key"]
    pool = urllib3.PoolManager(retries=False)
    headers = {"host": "kho.example", "authorization": f"Bearer {key}", "content-type": "application/json"}
    assert pool.request("POST", f"{guarded.address}/{LIST}", body=b"{}", headers=headers).status == 200
