"""An OIDC identity provider on loopback: it publishes and signs what a test passes."""

from __future__ import annotations

import base64
import contextlib
import hmac
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Final

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
        self.publish()

    def publish(self, *more: Any) -> None:
        """Publish the current keys, and `more` with them."""
        published = [key.as_dict(private=False) for key in self.keys.values()]
        self.serve("/keys", {"keys": [*published, *more]})
        self.serve("/.well-known/openid-configuration", {"issuer": self.issuer, "jwks_uri": f"{self.issuer}/keys"})

    def serve(self, path: str, content: Any) -> None:
        """Answer `path` with `content` from now on."""
        self.pages[path] = (200, {}, json.dumps(content).encode())

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
