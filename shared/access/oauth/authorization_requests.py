"""Authorization requests under way: each is stored under the hash of a random handle, which only its page contains."""

from __future__ import annotations

import re
import secrets
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from shared.access import keys
from shared.access.oauth.errors import OAuthError
from shared.access.oauth.provider_sign_in import SignInState
from shared.access.oauth.token_text import hash_of
from shared.aws.dynamodb import ConditionFailed, Write, from_item, to_item
from shared.platform.clock import lasts
from shared.rpc.caller import ROLES, Role

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shared.access.models import Clock
    from shared.access.oauth.clients import OAuthClient
    from shared.aws.dynamodb import Item, Table

DECISION_SECONDS: Final = 600
"""The time in which a person must decide on a request."""
_CHALLENGE: Final = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)
_MAX_STATE: Final = 2000
_DEFAULT_ROLE: Final[Role] = "reader"


@dataclass(frozen=True, slots=True)
class ResourceOwner:
    """The resource owner, who signs in: a key's tenant, name and role, or those in the identity provider's token."""

    tenant_id: str
    sub: str
    role: Role
    key_id: str = ""
    ends: int | None = None
    """The expiry of the key, which no grant outlives."""


@dataclass(frozen=True, slots=True)
class AuthorizationRequest:
    """One valid request of a client."""

    client_id: str
    client_name: str
    redirect_uri: str
    redirect_uri_sent: bool
    code_challenge: str
    resource: str
    role: Role
    """The highest role that the client asks for."""
    refreshable: bool
    state: str | None = None
    owner: ResourceOwner | None = None
    """The person whom the identity provider has signed in."""


def read_request(
    query: Mapping[str, str], client: OAuthClient, redirect_uri: str, resource: str
) -> AuthorizationRequest:
    """Read a request whose client and redirect URI are known to be right. Raise OAuthError if the rest is not."""
    if query.get("response_type") != "code":
        raise OAuthError("unsupported_response_type", "response_type must be 'code'.")
    if query.get("response_mode", "query") != "query":
        raise OAuthError("invalid_request", "response_mode must be 'query', or omitted.")
    # RFC 7636 reads a missing method as 'plain', which is not served: the challenge would be the verifier.
    if query.get("code_challenge_method") != "S256" or not _CHALLENGE.fullmatch(query.get("code_challenge", "")):
        raise OAuthError("invalid_request", "PKCE is required: code_challenge, and code_challenge_method 'S256'.")
    if len(query.get("state", "")) > _MAX_STATE:
        raise OAuthError("invalid_request", f"state has more than {_MAX_STATE} characters.")
    return AuthorizationRequest(
        client_id=client.id,
        client_name=client.name,
        redirect_uri=redirect_uri,
        redirect_uri_sent="redirect_uri" in query,
        code_challenge=query["code_challenge"],
        resource=resource,
        role=role_of(query.get("scope", ""), client.scope),
        refreshable="refresh_token" in client.grant_types,
        state=query.get("state"),
    )


def role_of(scope: str, allowed: str = "") -> Role:
    """Return the highest role among the requested scopes. Raise OAuthError for one that the client may not request."""
    requested = set(scope.split())
    if allowed and not requested <= {*allowed.split(), "offline_access"}:
        raise OAuthError("invalid_scope", "The client has not registered this scope.")
    roles = [role for role in ROLES if role in requested]
    if requested - {"offline_access"} and not roles:
        raise OAuthError("invalid_scope", f"The scopes are {', '.join(ROLES)}.")
    return roles[-1] if roles else _DEFAULT_ROLE


class AuthorizationRequests:
    """The requests that wait for a decision."""

    def __init__(self, table: Table, clock: Clock = time.time) -> None:
        self._table = table
        self._clock = clock

    def store(self, request: AuthorizationRequest) -> str:
        """Store a request. Return its handle."""
        handle, write = self._insertion(request)
        self._table.write(write)
        return handle

    def find(self, handle: str) -> AuthorizationRequest | None:
        """Return the request with this handle, None if there is none or it took too long."""
        return self._find(hash_of(handle))

    def removal(self, handle: str) -> Write:
        """Return the write that removes a request, on condition that it still waits for a decision."""
        return _removal(keys.authorization(hash_of(handle)))

    def start_sign_in(self, handle: str) -> SignInState:
        """Store a visit to the identity provider for a request. Return its state."""
        visit = SignInState.new(hash_of(handle))
        pk, sk = keys.sign_in(hash_of(visit.state))
        item = {"pk": pk, "sk": sk, "request": visit.request, "number": visit.number, "expires_at": self._expiry()}
        self._table.write(Write("Put", item))
        return visit

    def end_sign_in(self, state: str) -> SignInState | None:
        """Remove the visit with this state, so that it costs the provider one call at most.

        Return None if there is none, or it took too long.
        """
        key = keys.sign_in(hash_of(state))
        item = self._table.get(*key)
        if item is None or not self._waits(item):
            return None
        try:
            self._table.write(_removal(key))
        except ConditionFailed:
            return None
        return SignInState(state, item["number"], item["request"])

    def finish_sign_in(self, visit: SignInState, owner: ResourceOwner) -> tuple[AuthorizationRequest, str] | None:
        """Give the request its owner and a new handle, which only the owner's browser gets. Return both.

        Return None if the request is over. The old handle ends: who knows it could let the owner decide for another
        browser.
        """
        request = self._find(visit.request)
        if request is None:
            return None
        owned = replace(request, owner=owner)
        handle, write = self._insertion(owned)
        try:
            self._table.transact(_removal(keys.authorization(visit.request)), write)
        except ConditionFailed:
            return None
        return owned, handle

    def _find(self, handle_hash: str) -> AuthorizationRequest | None:
        item = self._table.get(*keys.authorization(handle_hash))
        if item is None or not self._waits(item):
            return None
        request = from_item(AuthorizationRequest, item)
        return replace(request, owner=ResourceOwner(**item["owner"])) if "owner" in item else request

    def _insertion(self, request: AuthorizationRequest) -> tuple[str, Write]:
        handle = secrets.token_urlsafe(32)
        pk, sk = keys.authorization(hash_of(handle))
        return handle, Write("Put", {"pk": pk, "sk": sk, "expires_at": self._expiry()} | to_item(request))

    def _waits(self, item: Item) -> bool:
        return lasts(item["expires_at"], self._clock(), DECISION_SECONDS)

    def _expiry(self) -> int:
        return int(self._clock()) + DECISION_SECONDS


def _removal(key: tuple[str, str]) -> Write:
    return Write("Delete", {"pk": key[0], "sk": key[1]}, condition="attribute_exists(pk)")
