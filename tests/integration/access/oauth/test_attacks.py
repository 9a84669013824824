"""Attacks on OAuth, one test each."""

from __future__ import annotations

import base64
import json
import re
import time
from typing import TYPE_CHECKING

import pytest

from endpoints import authorizer, jsonrpc
from shared.access import keys
from shared.access.api_keys import ApiKeys
from shared.access.oauth.clients import UNUSED_SECONDS, OAuthClients
from shared.access.oauth.grants import REPEAT_SECONDS
from shared.access.oauth.token_text import read_token
from shared.aws.dynamodb import Table, Write
from shared.platform.clock import iso_time
from shared.platform.config import config
from tests.helpers.mcp_events import event, initialize_event
from tests.helpers.oauth_client import (
    CALLBACK,
    PUBLIC_URL,
    VERIFIER,
    Answer,
    OAuthTestClient,
    challenge_of,
    hidden_fields,
)
from tests.integration.access.oauth.functions import send

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from shared.access.api_keys import ApiKey
    from shared.rpc.caller import Role


def mcp_status(token: str, path: str = "/mcp") -> int:
    """Return the status of a handshake with this token."""
    body = initialize_event("2025-11-25")["body"]
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    return send("POST", path, body=body, authorization=f"Bearer {token}", **headers).status


def is_error(answer: Answer, code: str, status: int = 400) -> bool:
    """Return whether the answer is OAuth's error with this code."""
    return answer.status == status and answer.json["error"] == code


def test_replayed_code_gives_nothing_and_its_tokens_die(client: OAuthTestClient, key: str) -> None:
    code = client.code(key)
    tokens = client.redeem(code).json
    assert mcp_status(tokens["access_token"]) == 200
    assert is_error(client.redeem(code), "invalid_grant")
    assert is_error(client.refresh(tokens["refresh_token"]), "invalid_grant")
    forget_cached_identities()
    assert mcp_status(tokens["access_token"]) == 401


@pytest.mark.parametrize("verifier", [None, "w" * 43, challenge_of(VERIFIER), "v" * 42, "v" * 129])
def test_code_without_its_verifier_gives_nothing(client: OAuthTestClient, key: str, verifier: str | None) -> None:
    code = client.code(key)
    assert client.redeem(code, code_verifier=verifier).json["error"] in ("invalid_request", "invalid_grant")
    assert client.redeem(code).status == 200


@pytest.mark.parametrize(
    "changes",
    [
        {"code_challenge": None},
        {"code_challenge": "short"},
        {"code_challenge_method": "plain", "code_challenge": VERIFIER},
        {"code_challenge_method": None},
    ],
)
def test_request_without_s256_is_refused(client: OAuthTestClient, changes: dict[str, str | None]) -> None:
    assert is_refused_page(client.open_page(**changes))


@pytest.mark.parametrize(
    "presented",
    [
        "https://app.example/other",
        "https://app.example/callback/",
        "https://app.example/callback/../callback",
        "https://app.example:8443/callback",
        "https://app.example:443/callback",
        "https://evil.app.example/callback",
        "https://app.example.evil.example/callback",
        "https://app.example@evil.example/callback",
        "https://app.example/callback#fragment",
        "https://app.example/callback?more=1",
        "https://APP.example/callback",
        "http://app.example/callback",
        "//app.example/callback",
        "javascript:alert(1)",
        None,
    ],
)
def test_redirect_uri_matches_exactly(client: OAuthTestClient, key: str, presented: str | None) -> None:
    if presented:
        page = client.open_page(redirect_uri=presented)
        assert page.status == 400
        assert "location" not in page.headers
        assert "app.example" not in page.body  # no link either
    assert is_error(client.redeem(client.code(key), redirect_uri=presented), "invalid_grant")


def test_only_the_port_of_a_loopback_redirect_uri_is_free(client: OAuthTestClient) -> None:
    client.register(redirect_uris=["http://127.0.0.1/cb", "http://localhost:1234/cb", "http://[::1]:9/cb"])
    for uri in ("http://127.0.0.1:5555/cb", "http://127.0.0.1/cb", "http://localhost:7/cb", "http://[::1]:80/cb"):
        assert client.open_page(redirect_uri=uri).status == 200, uri
    for uri in (
        "http://127.0.0.1:5555/other",
        "http://127.0.0.2/cb",
        "https://127.0.0.1/cb",
        "http://localhost.evil/cb",
    ):
        assert client.open_page(redirect_uri=uri).status == 400, uri


@pytest.mark.parametrize(
    "uri",
    [
        "http://app.example/callback",
        "https://app.example/callback#",
        "https://user@app.example/callback",
        "https://app.example\\@evil.example/",
        "https://аpp.example/callback",
        "https:///callback",
        "javascript:alert(1)",
        "data:text/html,x",
        "file:///etc/passwd",
        "ms-msdt:/id",
        "vscode:mcp/install?name=x",
        "/callback",
        "https://app.example/call back",
        'https://app.example/"onclick',
        "https://app.example/\r\nset-cookie:x",
        "",
    ],
)
def test_unsafe_redirect_uris_cannot_be_registered(client: OAuthTestClient, uri: str) -> None:
    assert is_error(client.register(redirect_uris=[uri]), "invalid_redirect_uri")


@pytest.mark.parametrize(
    "uri",
    [
        "cursor://anysphere.cursor-mcp/oauth/callback",
        "vscode://saoudrizwan.claude-dev/callback",
        "vscode-insiders://publisher.extension/callback",
        "claude://claude.ai/mcp-auth-callback/sdk",
        "codex://connector/oauth_callback",
        "warp://mcp/oauth2callback",
        "windsurf://codeium.windsurf/callback",
        "zed://oauth/callback",
        "raycast://oauth?package_name=Extension",
        "com.raycast:/oauth?package_name=Extension",
        "com.example.app:/callback",
        "com.example.app://callback",
        "vn.com.example-1.app2:/cb",
    ],
)
def test_redirect_uris_of_applications_work(client: OAuthTestClient, key: str, uri: str) -> None:
    """Reverse domain names (RFC 8252, section 7.1), and the schemes that known clients have instead."""
    assert client.register(redirect_uris=[uri]).status == 201
    answer = client.decide(client.open_page(redirect_uri=uri), key=key)
    assert answer.headers["location"].startswith(f"{uri}{'&' if '?' in uri else '?'}code=")
    assert client.redeem(answer.redirect["code"], redirect_uri=uri).status == 200


@pytest.mark.parametrize("sent", [True, False])
def test_registered_uri_of_a_refused_scheme_leads_nowhere(client: OAuthTestClient, sent: bool) -> None:
    """A registration of before the scheme was refused."""
    uri = "ms-msdt:/id"
    pk, sk = keys.oauth_client(client.client_id)
    change = Write("Update", {"pk": pk, "sk": sk}, "SET redirect_uris = :uris", values={":uris": [uri]})
    Table(config().access_table).write(change)
    page = client.open_page(redirect_uri=uri if sent else None)
    assert page.status == 400
    assert "location" not in page.headers
    assert "ms-msdt" not in page.body


@pytest.mark.parametrize("mode", ["fragment", "form_post", "query.jwt", "QUERY"])
def test_response_modes_other_than_query_are_refused(client: OAuthTestClient, mode: str) -> None:
    """A client that expects the code elsewhere must not get it where servers and logs see it."""
    page = client.open_page(response_mode=mode)
    assert is_refused_page(page)
    assert "error=invalid_request" in page.body
    assert client.open_page(response_mode="query").status == 200


def test_every_authorization_response_names_the_issuer(client: OAuthTestClient, key: str) -> None:
    """A client that talks to several servers can tell which one answered (mix-up, RFC 9207)."""
    allowed = client.decide(client.open_page(), key=key)
    denied = client.decide(client.open_page(), decision="deny")
    assert allowed.redirect.keys() == {"code", "state", "iss"}
    assert denied.redirect["error"] == "access_denied"
    for answer in (allowed, denied):
        assert (answer.redirect["iss"], answer.redirect["state"]) == (PUBLIC_URL, "the-state")
        assert answer.headers["location"].startswith(f"{CALLBACK}?")
    assert "iss=https%3A%2F%2Fkho.example" in client.open_page(scope="everything").body


def test_stolen_refresh_token_revokes_the_family(client: OAuthTestClient, key: str) -> None:
    first = client.tokens(key)
    second = client.refresh(first["refresh_token"]).json
    assert mcp_status(second["access_token"]) == 200
    assert is_error(client.refresh(first["refresh_token"]), "invalid_grant")
    forget_cached_identities()
    assert mcp_status(second["access_token"]) == 200
    antedate_use(first["refresh_token"], REPEAT_SECONDS + 1)
    assert is_error(client.refresh(first["refresh_token"]), "invalid_grant")
    assert is_error(client.refresh(second["refresh_token"]), "invalid_grant")
    forget_cached_identities()
    assert mcp_status(second["access_token"]) == 401


def antedate_use(refresh_token: str, seconds: float) -> None:
    """Make the use of a refresh token lie further back."""
    reference = read_token("refresh", refresh_token)
    assert reference
    pk, sk = keys.grant_tokens(reference.tenant_id, reference.grant_id), keys.token("refresh", reference.hash)
    use = Write("Update", {"pk": pk, "sk": sk}, "SET used_at = :at", values={":at": iso_time(time.time() - seconds)})
    Table(config().access_table).write(use)


def test_code_and_refresh_token_of_another_client_are_refused(client: OAuthTestClient, key: str) -> None:
    code, tokens = client.code(key), client.tokens(key)
    thief = OAuthTestClient(send)
    thief.register()
    assert is_error(thief.redeem(code), "invalid_grant")
    assert is_error(thief.refresh(tokens["refresh_token"]), "invalid_grant")
    assert thief.revoke(tokens["access_token"]).status == 200
    assert mcp_status(tokens["access_token"]) == 200


@pytest.mark.parametrize("changed", [{}, {"client_secret": "guess"}])
@pytest.mark.parametrize("method", ["client_secret_post", "client_secret_basic"])
def test_client_with_a_secret_must_present_it(
    client: OAuthTestClient, key: str, method: str, changed: dict[str, str]
) -> None:
    secret = client.register(token_endpoint_auth_method=method).json["client_secret"]
    code = client.code(key)
    assert is_error(client.redeem(code, **changed), "invalid_client", 401)
    form = {"grant_type": "authorization_code", "code": code, "code_verifier": VERIFIER, "redirect_uri": CALLBACK}
    if method == "client_secret_post":
        right = client.token(form | {"client_secret": secret})
    else:
        credentials = base64.b64encode(f"{client.client_id}:{secret}".encode()).decode()
        right = client.post("/oauth/token", form, {"authorization": f"Basic {credentials}"})
    assert right.status == 200
    stored = Table(config().access_table).get(f"#client#{client.client_id}", "client")
    assert secret not in json.dumps(stored, default=str)


def basic(credentials: str | bytes) -> dict[str, str]:
    text = credentials.encode() if isinstance(credentials, str) else credentials
    return {"authorization": f"Basic {base64.b64encode(text).decode()}"}


@pytest.mark.parametrize(
    "headers",
    [
        {"authorization": "Basic "},
        {"authorization": "Basic !!!!"},
        {"authorization": "Basic YTpi*"},
        basic("no colon"),
        basic(b"\xff:\xfe"),
    ],
)
def test_malformed_basic_credentials_are_refused(client: OAuthTestClient, headers: dict[str, str]) -> None:
    refused = client.post("/oauth/token", {"grant_type": "authorization_code", "code": "x"}, headers)
    assert is_error(refused, "invalid_client", 401)
    assert refused.json["error_description"] == "The Authorization header is not valid."


def test_client_presents_its_credentials_once(client: OAuthTestClient, key: str) -> None:
    """Otherwise a server in front and Kho could each look at another secret."""
    secret = client.register(token_endpoint_auth_method="client_secret_basic").json["client_secret"]
    code = client.code(key)
    form = {"grant_type": "authorization_code", "code": code, "code_verifier": VERIFIER, "redirect_uri": CALLBACK}
    header = basic(f"{client.client_id}:{secret}")
    for more in ({"client_secret": secret}, {"client_id": "another"}):
        refused = client.post("/oauth/token", form | more, header)
        assert is_error(refused, "invalid_client", 401)
        assert "two different kinds" in refused.json["error_description"]
    assert client.post("/oauth/token", form | {"client_id": client.client_id}, header).status == 200


def test_scopes_and_roles_do_not_escalate(
    client: OAuthTestClient, make_key: Callable[[Role], tuple[ApiKey, str]]
) -> None:
    reader, admin = make_key("reader")[1], make_key("admin")[1]
    assert client.tokens(reader, scope="reader writer operator admin")["scope"] == "reader"
    tokens = client.redeem(client.code(admin, role="admin", scope="writer")).json
    assert tokens["scope"] == "writer"
    assert is_error(client.refresh(tokens["refresh_token"], scope="admin"), "invalid_scope")
    assert client.redeem(client.code(admin, role="reader", scope="admin")).json["scope"] == "reader"
    assert client.redeem(client.code(admin, scope=None)).json["scope"] == "reader"
    client.register(scope="reader")
    assert is_refused_page(client.open_page(scope="reader writer"))
    assert is_refused_page(client.open_page(scope="root"))


def test_token_works_only_at_its_resource(client: OAuthTestClient, key: str) -> None:
    token = client.tokens(key)["access_token"]
    assert mcp_status(token) == 200
    call = {"jsonrpc": "2.0", "id": 1, "method": "memory-server/memory/get_or_create", "params": {}}
    refused = jsonrpc.handler(event(call, path="/jsonrpc", authorization=f"Bearer {token}"), None)
    assert refused["statusCode"] == 401
    request = {"headers": {}, "requestContext": {"requestId": "r"}, "identitySource": [f"Bearer {token}"]}
    assert authorizer.handler(request, None)["context"].keys() == {"refused"}
    assert mcp_status(token, "/mcp/documents") == 401
    of_device = client.redeem(
        client.code(key, resource=f"{PUBLIC_URL}/mcp/devices/lamp"), resource=f"{PUBLIC_URL}/mcp/devices/lamp"
    ).json["access_token"]
    assert mcp_status(of_device) == 401


@pytest.mark.parametrize(
    "resource", ["https://other.example/mcp", f"{PUBLIC_URL}.evil.example/mcp", f"{PUBLIC_URL}/mcp/../x", "mcp"]
)
def test_foreign_resources_are_refused(client: OAuthTestClient, key: str, resource: str) -> None:
    assert is_refused_page(client.open_page(resource=resource))
    assert is_error(client.redeem(client.code(key), resource=resource), "invalid_target")


def test_resource_of_the_token_request_is_that_of_the_authorization(client: OAuthTestClient, key: str) -> None:
    assert is_error(client.redeem(client.code(key), resource=PUBLIC_URL), "invalid_target")
    assert is_error(client.refresh(client.tokens(key)["refresh_token"], resource=PUBLIC_URL), "invalid_target")


def test_revoked_key_ends_its_grants(client: OAuthTestClient, make_key: Callable[[Role], tuple[ApiKey, str]]) -> None:
    key, text = make_key("writer")
    tokens = client.tokens(text)
    assert mcp_status(tokens["access_token"]) == 200
    ApiKeys(Table(config().access_table)).revoke(key.id)
    forget_cached_identities()
    assert mcp_status(tokens["access_token"]) == 401
    assert is_error(client.refresh(tokens["refresh_token"]), "invalid_grant")
    assert client.decide(client.open_page(), key=text).status == 403


@pytest.mark.parametrize(
    "changes",
    [{"response_type": "token"}, {"scope": "root"}, {"code_challenge": None}, {"resource": "https://other.example"}],
)
def test_errors_redirect_only_on_request(client: OAuthTestClient, changes: dict[str, str | None]) -> None:
    """Anybody can register a redirect URI: an automatic redirect would make Kho an open redirector (RFC 9700, 4.11)."""
    assert is_refused_page(client.open_page(**changes))


def is_refused_page(page: Answer) -> bool:
    """Return whether the page shows an error, with a link that only a person follows."""
    assert "location" not in page.headers
    assert f'href="{CALLBACK}?error=' in page.body
    assert "<form" not in page.body
    return page.status == 400


def test_pages_cannot_be_framed_scripted_or_sent_elsewhere(client: OAuthTestClient) -> None:
    for page in (client.open_page(), client.open_page(scope="root"), client.open_page(client_id="unknown")):
        policy = dict(each.split(" ", 1) for each in page.headers["content-security-policy"].split("; "))
        assert policy["frame-ancestors"] == policy["base-uri"] == policy["default-src"] == "'none'"
        assert policy["form-action"] in ("'none'", "'self' https://app.example")
        assert page.headers["x-frame-options"] == "DENY"
        assert page.headers["cache-control"] == "no-store"
        assert "set-cookie" not in page.headers
        assert not re.search(r"<script|<img|<link|\son\w+=|style=", page.body)


@pytest.mark.parametrize(
    ("headers", "fields"),
    [
        ({"origin": "https://evil.example"}, {}),
        ({"origin": "null"}, {}),
        ({"sec-fetch-site": "cross-site"}, {}),
        ({"sec-fetch-site": "same-site"}, {}),
        ({}, {"request": "guessed"}),
        ({}, {"request": ""}),
    ],
)
def test_forged_decisions_are_refused(
    client: OAuthTestClient, key: str, headers: dict[str, str], fields: dict[str, str]
) -> None:
    """A page of an attacker sends the form, with a key or a request of the attacker's own."""
    answer = client.decide(client.open_page(), headers, key=key, **fields)
    assert answer.status in (400, 403)
    assert "location" not in answer.headers


def test_request_is_decided_on_once(client: OAuthTestClient, key: str) -> None:
    page = client.open_page()
    assert client.decide(page, key="kho_wrong").status == 403
    assert client.decide(page, key=key).status == 303
    assert client.decide(page, key=key).status == 400
    denied = client.open_page()
    assert client.decide(denied, decision="deny").status == 303
    assert client.decide(denied, key=key).status == 400


def test_key_is_not_passed_on(client: OAuthTestClient, key: str) -> None:
    """After 303 a browser sends no form: with 307 it would send the key to the client."""
    answer = client.decide(client.open_page(), key=key)
    assert (answer.status, answer.body) == (303, "")
    assert key not in json.dumps(dict(answer.headers))
    assert answer.headers["referrer-policy"] == "no-referrer"


def test_client_without_a_name_is_registered(client: OAuthTestClient, key: str) -> None:
    answer = client.register(client_name=None)
    assert (answer.status, answer.json.get("client_name", "")) == (201, "")
    assert client.redeem(client.code(key)).status == 200


def test_flood_of_registrations_is_bounded(client: OAuthTestClient) -> None:
    """A flood ends at the address's limit, leaves items that expire within a day, and locks no other address out."""
    statuses = [client.register().status for _ in range(config().address_registration_burst + 5)]
    assert statuses[-1] == 429
    assert statuses.count(201) <= config().address_registration_burst
    assert client.open_page().status == 200
    late = OAuthClients(Table(config().access_table), PUBLIC_URL, clock=lambda: FAR)
    assert late.find(client.client_id) is None


FAR = 4_000_000_000.0


def test_unused_registration_is_forgotten_and_a_used_one_kept(client: OAuthTestClient, key: str) -> None:
    table = Table(config().access_table)
    before = table.get(f"#client#{client.client_id}", "client")
    client.tokens(key)
    after = table.get(f"#client#{client.client_id}", "client")
    assert before
    assert after
    assert after["expires_at"] - before["expires_at"] > 300 * UNUSED_SECONDS


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("Сlaude", "Cyrillic"),
        ("ΑΒC", "Greek"),
        ("Cla\u202eeduac\u202c", "Cla eduac"),
        ("A\u200bB\nC", "A B C"),
        ("<b>Kho</b>", "&lt;b&gt;Kho&lt;/b&gt;"),
        ("Ｋｈｏ", "“Kho”"),
        ("Trợ lý của tôi", "“Trợ lý của tôi”"),
        ("x" * 500, f"“{'x' * 80}”"),
    ],
)
def test_names_of_clients_cannot_deceive(client: OAuthTestClient, name: str, shown: str) -> None:
    client.register(client_name=name)
    page = client.open_page().body
    assert shown in page
    assert "<strong>app.example</strong>" in page
    assert ('role="alert"' in page) == (shown in ("Cyrillic", "Greek"))


def test_tokens_and_keys_are_not_logged(
    client: OAuthTestClient,
    key: str,
    capsys: pytest.CaptureFixture[str],
    log: Path,
) -> None:
    secret = client.register(token_endpoint_auth_method="client_secret_post").json["client_secret"]
    client.register()
    code = client.code(key)
    tokens = client.redeem(code).json
    fresh = client.refresh(tokens["refresh_token"]).json
    mcp_status(fresh["access_token"])
    client.redeem(code)
    client.refresh(tokens["refresh_token"])
    client.revoke(fresh["refresh_token"])
    page = client.open_page()
    client.decide(page, key=key, decision="deny")
    logged = log.read_text() + capsys.readouterr().out
    assert "oauth/token" in logged
    handle = hidden_fields(page)["request"]
    for text in (key, secret, code, VERIFIER, handle, *tokens.values(), *fresh.values()):
        if len(str(text)) > 20:
            assert str(text) not in logged


def test_forged_host_changes_no_address(client: OAuthTestClient) -> None:
    forged = {"host": "evil.example", "x-forwarded-host": "evil.example", "x-forwarded-proto": "http"}
    metadata = send("GET", "/.well-known/oauth-authorization-server", **forged)
    resource = send("GET", "/.well-known/oauth-protected-resource/mcp", **forged)
    refused = send("POST", "/mcp", body="{}", **forged)
    page = client.open_page(forged)
    for answer in (metadata, resource, refused, page):
        assert "evil" not in answer.body + json.dumps(dict(answer.headers))
    assert metadata.json["issuer"] == PUBLIC_URL
    assert resource.json["resource"] == f"{PUBLIC_URL}/mcp"
    assert f'resource_metadata="{PUBLIC_URL}/.well-known' in refused.headers["www-authenticate"]


@pytest.mark.parametrize("repeated", ["client_id", "redirect_uri", "code_challenge"])
def test_repeated_parameters_are_refused(client: OAuthTestClient, repeated: str) -> None:
    from urllib.parse import urlencode

    query = urlencode([*client.authorization_query().items(), (repeated, "other")])
    answer = send("GET", "/oauth/authorize", query=query)
    assert (answer.status, "location" in answer.headers) == (400, False)


@pytest.mark.parametrize(
    "client_id",
    [
        "https://127.0.0.1/client.json",
        "https://localhost/client.json",
        "https://169.254.169.254/latest/meta-data",
        "https://[::1]/client.json",
        "https://10.0.0.1/client.json",
    ],
)
def test_metadata_document_at_a_private_address_is_not_fetched(client: OAuthTestClient, client_id: str) -> None:
    answer = client.open_page(client_id=client_id)
    assert answer.status == 400
    assert "not a public address" in answer.body


def forget_cached_identities() -> None:
    """Forget the identities that functions cache for a minute."""
    from shared.access.credentials import cached_verifier

    cached_verifier.cache_clear()
