"""An OAuth client that can do everything wrong, and the person who decides on its pages."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import parse_qs, urlencode, urlsplit

from selectolax.lexbor import LexborHTMLParser

if TYPE_CHECKING:
    from collections.abc import Mapping

PUBLIC_URL: Final = "https://kho.example"
CALLBACK: Final = "https://app.example/callback"
VERIFIER: Final = "v" * 43


@dataclass(frozen=True, slots=True)
class Answer:
    """One response."""

    status: int
    headers: Mapping[str, str]
    body: str

    @property
    def json(self) -> Any:
        """Return the body's JSON."""
        return json.loads(self.body)

    @property
    def redirect(self) -> dict[str, str]:
        """Return the parameters of the address that the response leads to."""
        return {name: values[0] for name, values in parse_qs(urlsplit(self.headers["location"]).query).items()}


class Sender(Protocol):
    """Sends a request to a server."""

    def __call__(self, method: str, path: str, *, query: str = "", body: str = "", **headers: str) -> Answer: ...


@dataclass(slots=True)
class OAuthTestClient:
    """A client, whose every parameter a test may change."""

    send: Sender
    public_url: str = PUBLIC_URL
    client_id: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)

    def register(self, **metadata: Any) -> Answer:
        """Register as a public client with these changes to its metadata, and use the id from now on."""
        self.metadata = {
            "client_name": "Test client",
            "redirect_uris": [CALLBACK],
            "token_endpoint_auth_method": "none",
            "grant_types": ["authorization_code", "refresh_token"],
        } | metadata
        body = json.dumps({name: value for name, value in self.metadata.items() if value is not None})
        answer = self.send("POST", "/oauth/register", body=body, **{"content-type": "application/json"})
        if answer.status == 201:
            self.client_id = answer.json["client_id"]
        return answer

    def authorization_query(self, **changes: str | None) -> dict[str, str]:
        """Return the parameters of a valid request, with changes. None omits one."""
        parameters: dict[str, str | None] = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": CALLBACK,
            "code_challenge": challenge_of(VERIFIER),
            "code_challenge_method": "S256",
            "state": "the-state",
            "scope": "reader writer",
            "resource": f"{self.public_url}/mcp",
        }
        return {name: value for name, value in (parameters | changes).items() if value is not None}

    def open_page(self, headers: Mapping[str, str] | None = None, /, **changes: str | None) -> Answer:
        """Open the page of an authorization request."""
        query = urlencode(self.authorization_query(**changes))
        return self.send("GET", "/oauth/authorize", query=query, **(headers or {}))

    def decide(self, page: Answer, headers: Mapping[str, str] | None = None, /, **fields: str) -> Answer:
        """Send the page's form, with `allow` unless the fields say otherwise."""
        form = hidden_fields(page) | {"decision": "allow"} | fields
        return self.post("/oauth/authorize", form, {"origin": self.public_url} | dict(headers or {}))

    def code(self, key: str, /, role: str | None = None, **changes: str | None) -> str:
        """Let the person with this key allow a request. Return the code."""
        answer = self.decide(self.open_page(**changes), key=key, **({"role": role} if role else {}))
        assert answer.status == 303, answer.body
        return answer.redirect["code"]

    def redeem(self, code: str, **changes: str | None) -> Answer:
        """Exchange a code, with changes to the parameters. None omits one."""
        form: dict[str, str | None] = {"grant_type": "authorization_code", "code": code, "code_verifier": VERIFIER}
        return self.token(form | {"redirect_uri": CALLBACK} | changes)

    def refresh(self, refresh_token: str, **changes: str | None) -> Answer:
        """Use a refresh token."""
        form: dict[str, str | None] = {"grant_type": "refresh_token", "refresh_token": refresh_token}
        return self.token(form | changes)

    def token(self, form: Mapping[str, str | None]) -> Answer:
        """Send a request to the token endpoint."""
        return self.post("/oauth/token", form if "client_id" in form else {"client_id": self.client_id, **form})

    def tokens(self, key: str, **changes: str | None) -> dict[str, Any]:
        """Return new tokens that the person with this key allows."""
        answer = self.redeem(self.code(key, **changes))
        assert answer.status == 200, answer.body
        tokens: dict[str, Any] = answer.json
        return tokens

    def revoke(self, token: str, **changes: str) -> Answer:
        """Revoke a token."""
        return self.post("/oauth/revoke", {"client_id": self.client_id, "token": token} | changes)

    def post(self, path: str, form: Mapping[str, str | None], headers: Mapping[str, str] | None = None) -> Answer:
        """Send a form."""
        body = urlencode({name: value for name, value in form.items() if value is not None})
        return self.send("POST", path, body=body, **{"content-type": _FORM} | dict(headers or {}))


_FORM: Final = "application/x-www-form-urlencoded"


def challenge_of(verifier: str) -> str:
    """Return the S256 challenge of a verifier."""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")


def hidden_fields(page: Answer) -> dict[str, str]:
    """Return the hidden fields of the page's form."""
    fields = LexborHTMLParser(page.body).css("form input[type=hidden]")
    return {str(each.attributes["name"]): str(each.attributes["value"]) for each in fields}
