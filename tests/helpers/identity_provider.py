"""An OIDC identity provider on loopback: it publishes and signs what a test passes."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from joserfc import jws
from joserfc.jwk import ECKey, RSAKey
from joserfc.jws import JWSRegistry

if TYPE_CHECKING:
    from collections.abc import Iterator

AUDIENCE: Final = "kho"
SIGNING: Final = JWSRegistry(algorithms=["RS256", "PS256", "ES256"], strict_check_header=False)


class IdentityProvider(ThreadingHTTPServer):
    """The provider, its keys, and a record of its requests."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Conversation)
        self.keys: dict[str, RSAKey | ECKey] = {"rsa": rsa_key("rsa"), "ec": ec_key("ec")}
        self.issuer = f"http://127.0.0.1:{self.server_address[1]}"
        self.asked: list[str] = []
        self.pages: dict[str, tuple[int, dict[str, str], bytes]] = {}
        self.down = False
        self.visits: dict[str, tuple[dict[str, str], dict[str, Any]]] = {}
        self.client_credentials = ""
        self.person: dict[str, Any] = {}
        """The claims of the person who signs in with a browser."""
        self.publish()

    def publish(self, *more: Any) -> None:
        """Publish the current keys, and `more` with them."""
        published = [key.as_dict(private=False) for key in self.keys.values()]
        self.serve("/keys", {"keys": [*published, *more]})
        endpoints = {"jwks_uri": "keys", "authorization_endpoint": "authorize", "token_endpoint": "token"}
        metadata = {name: f"{self.issuer}/{path}" for name, path in endpoints.items()}
        self.serve("/.well-known/openid-configuration", {"issuer": self.issuer} | metadata)

    def serve(self, path: str, content: Any) -> None:
        """Answer `path` with `content` from now on."""
        self.pages[path] = (200, {}, json.dumps(content).encode())

    def sign_in(self, address: str, **claims: Any) -> str:
        """Sign a person in at the address to which a client leads. Return the query with which the client is called."""
        query = dict(parse_qsl(urlsplit(address).query))
        code = f"code-{len(self.visits)}"
        self.visits[code] = (query, {"aud": query["client_id"], "nonce": query["nonce"]} | claims)
        return urlencode({"code": code, "state": query["state"], "iss": self.issuer})

    def exchange(self, form: dict[str, str], authorization: str) -> dict[str, str] | None:
        """Return the tokens of a code, or None if the request is wrong."""
        query, claims = self.visits.pop(form.get("code", ""), ({}, {}))
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        expected = {"redirect_uri": query.get("redirect_uri"), "client_id": query.get("client_id")}
        is_right = encode_part(digest) == query.get("code_challenge") and expected.items() <= form.items()
        return {"id_token": self.token(**claims)} if is_right and authorization == self.client_credentials else None

    def claims(self, **changes: Any) -> dict[str, Any]:
        """Return the claims of a valid token, with changes. None omits a claim."""
        good = {
            "iss": self.issuer,
            "aud": AUDIENCE,
            "sub": "user-1",
            "exp": int(time.time()) + 3600,
            "tenant_id": "tenant-asia-01",
            "roles": ["writer"],
        }
        return {name: value for name, value in (good | changes).items() if value is not None}

    def sign(self, claims: dict[str, Any], *, kid: str = "rsa", alg: str = "", **header: Any) -> str:
        """Return a token with these claims, signed with one of the keys."""
        key = self.keys[kid]
        alg = alg or ("RS256" if isinstance(key, RSAKey) else "ES256")
        return jws.serialize_compact({"alg": alg, "kid": kid, **header}, json.dumps(claims), key, registry=SIGNING)

    def token(self, **changes: Any) -> str:
        """Return a valid token, with changes."""
        return self.sign(self.claims(**changes))


class _Conversation(BaseHTTPRequestHandler):
    server: IdentityProvider

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        if self.path.startswith("/authorize?"):
            client = dict(parse_qsl(urlsplit(self.path).query))["redirect_uri"]
            self.send_response(302)
            self.send_header("location", f"{client}?{self.server.sign_in(self.path, **self.server.person)}")
            self.end_headers()
            return
        unavailable: tuple[int, dict[str, str], bytes] = (503, {}, b"")
        status, headers, body = unavailable if self.server.down else self.server.pages.get(self.path, (404, {}, b""))
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        # The client may have closed the connection early.
        with contextlib.suppress(ConnectionError):
            self.wfile.write(body)

    def do_POST(self) -> None:
        form = dict(parse_qsl(self.rfile.read(int(self.headers["content-length"])).decode()))
        tokens = self.server.exchange(form, self.headers.get("authorization", ""))
        body = json.dumps(tokens or {"error": "invalid_grant"}).encode()
        self.send_response(200 if tokens else 400)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


def rsa_key(kid: str) -> RSAKey:
    """Return a new RSA key pair."""
    return RSAKey.generate_key(2048, {"kid": kid, "use": "sig"})


def ec_key(kid: str) -> ECKey:
    """Return a new key pair on P-256."""
    return ECKey.generate_key("P-256", {"kid": kid, "use": "sig"})


def unsigned_token(
    header: dict[str, Any], claims: dict[str, Any], signature: bytes = b"", *, secret: bytes | None = None
) -> str:
    """Return a token without a valid signature, or with a MAC under `secret`."""
    content = f"{encode_part(json.dumps(header).encode())}.{encode_part(json.dumps(claims).encode())}"
    if secret is not None:
        signature = hmac.digest(secret, content.encode(), "sha256")
    return f"{content}.{encode_part(signature)}"


def encode_part(part: bytes) -> str:
    """Encode one part of a token."""
    return base64.urlsafe_b64encode(part).decode().rstrip("=")


@contextlib.contextmanager
def identity_provider() -> Iterator[IdentityProvider]:
    """Serve inside the block."""
    with IdentityProvider() as provider:
        thread = threading.Thread(target=provider.serve_forever, name="identity-provider", args=(0.02,))
        thread.start()
        try:
            yield provider
        finally:
            provider.shutdown()
            thread.join()
