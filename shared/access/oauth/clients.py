"""OAuth clients: the console, registered clients (RFC 7591), and clients whose id is their metadata's address."""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import secrets
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote_plus, urlsplit

from shared.access import keys
from shared.access.oauth.client_metadata import AUTH_METHODS, GRANT_TYPES, SCOPES
from shared.access.oauth.display_names import display_name
from shared.access.oauth.errors import OAuthError
from shared.access.oauth.redirect_uris import is_redirect_uri, matches
from shared.access.oauth.token_text import hash_of
from shared.aws.dynamodb import Write, from_item
from shared.platform.public_address import AddressFailed, AddressRefused, PublicClient, RequestLimits
from shared.platform.ttl_cache import TtlCache

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shared.access.models import Clock
    from shared.aws.dynamodb import Item, Table

CONSOLE: Final = "kho-console"
"""The id of the console, a public client of this server."""
UNUSED_SECONDS: Final = 86_400
"""The lifetime of an unused registration: it bounds what a flood leaves behind."""
USED_SECONDS: Final = 365 * 86_400
"""The lifetime of a registration after each authorisation."""
DOCUMENT_LIMITS: Final = RequestLimits(seconds=5, max_bytes=10_240, content_types=("application/json",))
_DOCUMENT_SECONDS: Final = 300
_MAX_URIS: Final = 10
_MAX_ID: Final = 500


@dataclass(frozen=True, slots=True)
class OAuthClient:
    """One client."""

    id: str
    name: str
    redirect_uris: tuple[str, ...]
    auth_method: str = "none"
    secret_hash: str = ""
    scope: str = ""
    """The scopes that it may request; empty: all."""
    grant_types: tuple[str, ...] = GRANT_TYPES

    def require_redirect_uri(self, presented: str | None) -> str:
        """Return the redirect URI of a request. Raise OAuthError if it is not the client's."""
        if presented is None and len(self.redirect_uris) == 1:
            presented = self.redirect_uris[0]
        if presented is None or not any(matches(registered, presented) for registered in self.redirect_uris):
            raise OAuthError("invalid_request", "redirect_uri is not one that the client has registered.")
        return presented

    def metadata(self) -> dict[str, Any]:
        """Return the registered metadata in the format of RFC 7591."""
        return {
            "client_id": self.id,
            "client_name": self.name,
            "redirect_uris": list(self.redirect_uris),
            "token_endpoint_auth_method": self.auth_method,
            "grant_types": list(self.grant_types),
            "response_types": ["code"],
            **({"scope": self.scope} if self.scope else {}),
        }


class OAuthClients:
    """The clients that this server knows."""

    def __init__(
        self, table: Table, public_url: str, documents: ClientDocuments | None = None, clock: Clock = time.time
    ) -> None:
        self._table = table
        self._console = OAuthClient(CONSOLE, "Kho", (f"{public_url}/console/",))
        self._documents = documents
        self._clock = clock

    def find(self, client_id: str) -> OAuthClient | None:
        """Return the client with this id, or None. Raise OAuthError if its metadata cannot be used."""
        if client_id == CONSOLE:
            return self._console
        if client_id.startswith("https://"):
            return self._documents.client(client_id) if self._documents else _public_client(client_id)
        item = self._table.get(*keys.oauth_client(client_id)) if _is_registered_id(client_id) else None
        return None if item is None or item["expires_at"] <= self._clock() else _client(client_id, item)

    def register(self, metadata: Any) -> tuple[OAuthClient, str]:
        """Register a client. Return it and its secret, which is not stored and empty for a public client."""
        client = _parse_metadata(metadata)
        client_id, secret = secrets.token_hex(16), ""
        if client.auth_method != "none":
            secret = secrets.token_urlsafe(32)
        pk, sk = keys.oauth_client(client_id)
        item = {
            "pk": pk,
            "sk": sk,
            "name": client.name,
            "redirect_uris": list(client.redirect_uris),
            "auth_method": client.auth_method,
            "secret_hash": hash_of(secret) if secret else "",
            "scope": client.scope,
            "grant_types": list(client.grant_types),
            "expires_at": int(self._clock()) + UNUSED_SECONDS,
        }
        self._table.write(Write("Put", item, condition="attribute_not_exists(pk)"))
        return _client(client_id, item), secret

    def extend_lifetime(self, client_id: str) -> Write | None:
        """Return the write that prolongs a registration that a person authorises, None for a client without one."""
        if not _is_registered_id(client_id):
            return None
        pk, sk = keys.oauth_client(client_id)
        return Write(
            "Update",
            {"pk": pk, "sk": sk},
            expression="SET expires_at = :expiry",
            condition="attribute_exists(pk)",
            values={":expiry": int(self._clock()) + USED_SECONDS},
        )

    def authenticate(self, form: Mapping[str, str], authorization: str) -> OAuthClient:
        """Return the client that sends this request. Raise OAuthError if it does not prove to be one."""
        client_id, secret = form.get("client_id", ""), form.get("client_secret", "")
        is_basic = authorization[:6].lower() == "basic "
        if is_basic:
            basic_id, secret = _basic(authorization[6:])
            if client_id not in ("", basic_id) or "client_secret" in form:
                raise OAuthError("invalid_client", "The request has two different kinds of client credentials.")
            client_id = basic_id
        client = self.find(client_id)
        if client is None:
            raise OAuthError("invalid_client", "There is no client with this client_id: register again.")
        used = "client_secret_basic" if is_basic else "client_secret_post" if secret else "none"
        if used != client.auth_method or not hmac.compare_digest(hash_of(secret) if secret else "", client.secret_hash):
            raise OAuthError("invalid_client", "The client's credentials are not those that it registered with.")
        return client


_WITHOUT_INTERNET: Final = (
    "Without Internet, set KHO_CLIENT_METADATA_DOCUMENTS=false on the server: clients then register."
)


class ClientDocuments:
    """Client-id metadata documents, fetched from the addresses that are the clients' ids."""

    def __init__(self, fetcher: PublicClient | None = None, clock: Clock = time.monotonic) -> None:
        self._fetcher = fetcher or PublicClient(DOCUMENT_LIMITS)
        self._fetched: TtlCache[str, OAuthClient | OAuthError] = TtlCache(_DOCUMENT_SECONDS, clock=clock, capacity=500)

    def client(self, url: str) -> OAuthClient:
        """Return the client that the document at `url` describes. Failures are cached too: they may be an attack."""
        outcome = self._fetched.get(url)
        if outcome is None:
            try:
                outcome = self._fetch(url)
            except OAuthError as error:
                outcome = error
            self._fetched.put(url, outcome)
        if isinstance(outcome, OAuthError):
            raise OAuthError(outcome.code, outcome.description)
        return outcome

    def _fetch(self, url: str) -> OAuthClient:
        _require_document_url(url)
        try:
            response = self._fetcher.request("GET", url, headers={"accept": "application/json"})
        except (AddressRefused, AddressFailed) as error:
            advice = f" {_WITHOUT_INTERNET}" if isinstance(error, AddressFailed) else ""
            raise OAuthError("invalid_client", f"The address of the client's metadata {error}.{advice}") from None
        if response.status != 200:
            raise OAuthError("invalid_client", f"The address of the client's metadata answers {response.status}.")
        try:
            document = json.loads(response.content)
        except (ValueError, RecursionError):
            document = None
        if not isinstance(document, dict) or document.get("client_id") != url:
            raise OAuthError("invalid_client", "The client's metadata must be a JSON object with its own address.")
        if "client_secret" in document:
            raise OAuthError("invalid_client", "The client's metadata contains a secret.")
        client = _parse_metadata({"token_endpoint_auth_method": "none"} | document)
        if client.auth_method != "none":
            raise OAuthError("invalid_client", "A client with metadata at an address has no secret: use 'none'.")
        return OAuthClient(url, client.name, client.redirect_uris, scope=client.scope, grant_types=client.grant_types)


def _parse_metadata(metadata: Any) -> OAuthClient:
    """Return the client that its metadata describe, without an id. Unknown members are ignored, as RFC 7591 says."""
    if not isinstance(metadata, dict):
        raise OAuthError("invalid_client_metadata", "The metadata must be a JSON object.")
    uris = _texts(metadata, "redirect_uris", ())
    if not 1 <= len(uris) <= _MAX_URIS:
        raise OAuthError("invalid_redirect_uri", f"redirect_uris must have 1 to {_MAX_URIS} entries.")
    for uri in uris:
        if not is_redirect_uri(uri):
            raise OAuthError(
                "invalid_redirect_uri",
                "A redirect URI is https, http on a loopback address, or a scheme of an application that is a reverse "
                "domain name, such as com.example.app:/callback; without fragment.",
            )
    auth_method = _text(metadata, "token_endpoint_auth_method") or "client_secret_basic"
    if auth_method not in AUTH_METHODS:
        raise OAuthError("invalid_client_metadata", f"token_endpoint_auth_method is one of {', '.join(AUTH_METHODS)}.")
    requested = _texts(metadata, "grant_types", ("authorization_code",))
    grant_types = tuple(each for each in GRANT_TYPES if each in requested)
    if "authorization_code" not in grant_types or "code" not in _texts(metadata, "response_types", ("code",)):
        raise OAuthError("invalid_client_metadata", "Only the grant type authorization_code (code) is served.")
    scope = " ".join(dict.fromkeys((_text(metadata, "scope") or "").split()))
    if not set(scope.split()) <= set(SCOPES):
        raise OAuthError("invalid_client_metadata", f"The scopes are {', '.join(SCOPES)}.")
    name = display_name(_text(metadata, "client_name") or "")
    return OAuthClient("", name, uris, auth_method, scope=scope, grant_types=grant_types)


def _text(metadata: Mapping[str, Any], name: str) -> str | None:
    value = metadata.get(name)
    if value is not None and not isinstance(value, str):
        raise OAuthError("invalid_client_metadata", f"{name} must be a string.")
    return value


def _texts(metadata: Mapping[str, Any], name: str, default: tuple[str, ...]) -> tuple[str, ...]:
    value = metadata.get(name)
    if value is None:
        return default
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise OAuthError("invalid_client_metadata", f"{name} must be a list of strings.")
    return tuple(dict.fromkeys(value))


def _require_document_url(url: str) -> None:
    """Refuse addresses that cannot be a client's id: without a path, with dot segments, a fragment or a user name."""
    try:
        parts = urlsplit(url)
        is_id = len(url) <= _MAX_ID and url.isascii() and url.isprintable() and " " not in url
    except ValueError:
        is_id = False
    if not is_id or parts.path in ("", "/") or {".", ".."} & set(parts.path.split("/")) or "#" in url or "@" in url:
        raise OAuthError("invalid_client", "This client_id cannot be the address of a client's metadata.")


def _public_client(client_id: str) -> OAuthClient:
    """Return a client that holds no secret, where codes and tokens are bound to its id and nothing else matters."""
    return OAuthClient(client_id, "", ())


def _is_registered_id(client_id: str) -> bool:
    return len(client_id) == 32 and client_id.isalnum() and client_id.isascii()


def _basic(credentials: str) -> tuple[str, str]:
    """Return the id and secret of HTTP Basic authentication, which both are form-encoded (RFC 6749, section 2.3.1)."""
    try:
        client_id, separator, secret = base64.b64decode(credentials.strip(), validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        separator = ""
    if not separator:
        raise OAuthError("invalid_client", "The Authorization header is not valid.")
    return unquote_plus(client_id), unquote_plus(secret)


def _client(client_id: str, item: Item) -> OAuthClient:
    lists = {name: tuple(item[name]) for name in ("redirect_uris", "grant_types")}
    return from_item(OAuthClient, item | lists | {"id": client_id})
