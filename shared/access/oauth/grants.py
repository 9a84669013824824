"""Grants: what a resource owner allows a client, with the codes and tokens that are issued for it.

A grant is one item, and each of its tokens another. A code works once, and refresh tokens rotate: each works once. A
second use revokes the grant with everything that was issued for it. A refresh token that is used again within
REPEAT_SECONDS comes from a client with several processes, not a thief: that request is refused, and the grant lives.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
import time
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Final, Literal

from shared.access import keys
from shared.access.api_keys import ApiKeys
from shared.access.models import Clock, Identity
from shared.access.oauth.errors import OAuthError
from shared.access.oauth.token_text import TokenReference, hash_of, new_token, read_token
from shared.aws.dynamodb import ConditionFailed, Item, Keys, Table, Write, from_item, to_item
from shared.platform.clock import iso_time, lasts
from shared.platform.telemetry import count, logger
from shared.rpc.caller import ROLES, Caller, Role
from shared.rpc.errors import NotFound, NotSignedIn

if TYPE_CHECKING:
    from collections.abc import Callable

    from shared.access.oauth.authorization_requests import AuthorizationRequest, ResourceOwner
    from shared.access.oauth.clients import OAuthClient

CODE_SECONDS: Final = 60
ACCESS_SECONDS: Final = 3600
IDLE_SECONDS: Final = 30 * 86_400
"""The time for which an unused refresh token is valid."""
GRANT_SECONDS: Final = 90 * 86_400
REPEAT_SECONDS: Final = 30
"""The time in which a second use of a refresh token revokes nothing. It gives no tokens, so it helps no thief."""
_VERIFIER: Final = re.compile(r"[A-Za-z0-9._~-]{43,128}", re.ASCII)
_GRANT_ID: Final = re.compile(r"[0-9a-f]{16}", re.ASCII)
_STORED: Final = "attribute_exists(pk)"
_NOT_REVOKED: Final = "attribute_not_exists(revoked_at)"
_ENDED: Final = "This refresh token is expired or revoked, or of another client."

GrantState = Literal["active", "ended", "revoked"]


@dataclass(frozen=True, slots=True)
class Grant:
    """One grant without its secrets."""

    id: str
    tenant_id: str
    client_id: str
    client_name: str
    redirect_uri: str
    sub: str
    key_id: str
    role: Role
    resource: str
    refreshable: bool
    created_at: str
    ends_at: int
    idle_until: int = 0
    revoked_at: str | None = None

    def state(self, now: float) -> GrantState:
        """Return the grant's state at `now`, apart from that of the key that allowed it."""
        if self.revoked_at:
            return "revoked"
        is_believed = lasts(self.ends_at, now, GRANT_SECONDS) and lasts(self.idle_until, now, IDLE_SECONDS)
        return "active" if is_believed else "ended"


@dataclass(frozen=True, slots=True)
class IssuedTokens:
    """The tokens of one response."""

    access_token: str
    refresh_token: str
    role: Role
    expires_in: int


class Grants:
    """Every tenant's grants.

    `admit` meters a request that presents a code or token: with the name of its grant, or with None if there is none.
    """

    def __init__(
        self, table: Table, clock: Clock = time.time, admit: Callable[[str | None], None] = lambda _grant: None
    ) -> None:
        self._table = table
        self._keys = ApiKeys(table, clock)
        self._clock = clock
        self._admit = admit

    def issue_code(self, request: AuthorizationRequest, owner: ResourceOwner, role: Role, *decision: Write) -> str:
        """Store a grant and return its code, all with the writes of the decision or none. Raise ConditionFailed."""
        now = self._clock()
        grant_id = secrets.token_hex(8)
        code = new_token("code", owner.tenant_id, grant_id)
        ends_at = int(min(now + GRANT_SECONDS, owner.ends or now + GRANT_SECONDS))
        role = min(role, request.role, owner.role, key=ROLES.index)
        item = to_item(replace(request, role=role, state=None, owner=None)) | {
            "pk": keys.grants(owner.tenant_id),
            "sk": grant_id,
            "sub": owner.sub,
            "key_id": owner.key_id,
            "created_at": iso_time(now),
            "ends_at": ends_at,
            "code_hash": hash_of(code),
            "expires_at": int(now) + CODE_SECONDS,
        }
        self._table.transact(Write("Put", item, condition="attribute_not_exists(pk)"), *decision)
        return code

    def redeem(
        self, text: str, client: OAuthClient, verifier: str, redirect_uri: str | None, resource: str
    ) -> IssuedTokens:
        """Exchange a code for tokens. A code that was exchanged before revokes what was issued for it."""
        reference = read_token("code", text)
        item = self._table.get(keys.grants(reference.tenant_id), reference.grant_id) if reference else None
        if reference is None or item is None or not hmac.compare_digest(item["code_hash"], reference.hash):
            self._admit(None)
            raise OAuthError("invalid_grant", "This code is not valid.")
        if "redeemed_at" in item:
            raise self._replayed(reference, "code")
        self._admit(_name(reference))
        now = self._clock()
        if not lasts(item["expires_at"], now, CODE_SECONDS) or item["client_id"] != client.id or "revoked_at" in item:
            raise OAuthError("invalid_grant", "This code is expired, or of another client.")
        if redirect_uri != (item["redirect_uri"] if item["redirect_uri_sent"] else None):
            raise OAuthError("invalid_grant", "redirect_uri is not that of the authorization request.")
        if not _proves(verifier, item["code_challenge"]):
            raise OAuthError("invalid_grant", "code_verifier does not match the code_challenge.")
        grant = _grant(item)
        self._require_resource(grant, resource)
        self._require_authorization(grant)
        idle_until = min(int(now) + (IDLE_SECONDS if grant.refreshable else ACCESS_SECONDS), grant.ends_at)
        redemption = Write(
            "Update",
            {"pk": item["pk"], "sk": item["sk"]},
            expression="SET redeemed_at = :now, idle_until = :idle, expires_at = :end",
            condition=f"attribute_not_exists(redeemed_at) AND {_NOT_REVOKED}",
            values={":now": iso_time(now), ":idle": idle_until, ":end": grant.ends_at},
        )
        tokens, writes = self._issue(grant, grant.role)
        try:
            self._table.transact(redemption, *writes)
        except ConditionFailed:
            raise self._replayed(reference, "code") from None
        return tokens

    def refresh(self, text: str, client: OAuthClient, scope_role: Role | None, resource: str) -> IssuedTokens:
        """Exchange a refresh token for new tokens. One that was used REPEAT_SECONDS before revokes the grant."""
        reference = read_token("refresh", text)
        key = self._token_key("refresh", reference) if reference else ("", "")
        item = self._table.get(*key) if reference else None
        if reference is None or item is None:
            self._admit(None)
            raise OAuthError("invalid_grant", "This refresh token is not valid.")
        now = self._clock()
        if "used_at" in item:
            if _is_recent(item["used_at"], now):
                raise self._repeated(reference)
            raise self._replayed(reference, "refresh token")
        self._admit(_name(reference))
        grant = self._find(reference.tenant_id, reference.grant_id)
        if grant is None or grant.client_id != client.id or grant.state(now) != "active":
            raise OAuthError("invalid_grant", _ENDED)
        if scope_role is not None and ROLES.index(scope_role) > ROLES.index(grant.role):
            raise OAuthError("invalid_scope", "The scope exceeds what was granted.")
        self._require_resource(grant, resource)
        self._require_authorization(grant)
        tokens, writes = self._issue(grant, scope_role or grant.role)
        use = Write(
            "Update",
            {"pk": key[0], "sk": key[1]},
            expression="SET used_at = :now",
            condition=f"{_STORED} AND attribute_not_exists(used_at)",
            values={":now": iso_time(now)},
        )
        extension = Write(
            "Update",
            {"pk": keys.grants(grant.tenant_id), "sk": grant.id},
            expression="SET idle_until = :idle",
            condition=f"{_STORED} AND {_NOT_REVOKED}",
            values={":idle": min(int(now) + IDLE_SECONDS, grant.ends_at)},
        )
        try:
            self._table.transact(use, extension, *writes)
        except ConditionFailed as failed:
            if 0 in failed.failed:
                raise self._repeated(reference) from None
            raise OAuthError("invalid_grant", _ENDED) from None
        return tokens

    def verify(self, text: str) -> Identity:
        """Return the identity of an access token. Raise NotSignedIn if it is not valid."""
        reference = read_token("access", text)
        item = self._table.get(*self._token_key("access", reference)) if reference else None
        now = self._clock()
        if reference is None or item is None or not lasts(item["expires_at"], now, ACCESS_SECONDS):
            raise NotSignedIn("This token is expired, or not valid.")
        grant = self._find(reference.tenant_id, reference.grant_id)
        if grant is None or grant.state(now) != "active" or not self._is_authorized(grant):
            raise NotSignedIn("This token is revoked.")
        caller = Caller(grant.sub, frozenset((item["role"],)), grant.tenant_id)
        return Identity(caller, item["expires_at"], grant.resource)

    def revoke_token(self, text: str, client: OAuthClient) -> None:
        """Revoke the grant of an access or refresh token of this client. Other texts change nothing."""
        for kind in ("access", "refresh"):
            reference = read_token(kind, text)
            if reference and self._table.get(*self._token_key(kind, reference)):
                grant = self._find(reference.tenant_id, reference.grant_id)
                if grant and grant.client_id == client.id and not grant.revoked_at:
                    self._revoke(grant.tenant_id, grant.id)
                return
        self._admit(None)

    def list_grants(self, tenant_id: str | None = None) -> list[Grant]:
        """List the grants of one tenant or of all tenants whose codes were exchanged, oldest first."""
        if tenant_id is None:
            items = list(self._table.get_all(self._table.keys(keys.GRANTS)))
        else:
            pages = self._table.query(keys.grants(tenant_id), Keys.after(" "))
            items = [item for page in pages for item in page]
        grants = [_grant(item) for item in items if "redeemed_at" in item]
        return sorted(grants, key=lambda grant: (grant.created_at, grant.id))

    def state(self, grant: Grant, now: float) -> GrantState:
        """Return the grant's state at `now`: a grant ends with the key that allowed it."""
        state = grant.state(now)
        return "ended" if state == "active" and not self._is_authorized(grant) else state

    def revoke(self, tenant_id: str, grant_id: str) -> Grant:
        """Revoke a grant. Revoking it again changes nothing."""
        grant = self._find(tenant_id, grant_id) if _GRANT_ID.fullmatch(grant_id) else None
        if grant is None:
            raise NotFound("The tenant has no grant with this id; 'kho grants list' shows the ids.")
        return self._revoke(tenant_id, grant_id) or grant

    def _issue(self, grant: Grant, role: Role) -> tuple[IssuedTokens, list[Write]]:
        """Return new tokens, and the writes that store their hashes."""
        now = int(self._clock())
        expiry = min(now + ACCESS_SECONDS, grant.ends_at)
        access = new_token("access", grant.tenant_id, grant.id)
        writes = [self._token_insertion("access", access, {"role": role, "expires_at": expiry})]
        refresh = ""
        if grant.refreshable:
            refresh = new_token("refresh", grant.tenant_id, grant.id)
            # A used token is kept as long as the grant, to recognise its second use.
            writes.append(self._token_insertion("refresh", refresh, {"expires_at": grant.ends_at}))
        return IssuedTokens(access, refresh, role, expiry - now), writes

    def _token_insertion(self, kind: Literal["access", "refresh"], text: str, attributes: Item) -> Write:
        reference = read_token(kind, text)
        assert reference
        pk, sk = self._token_key(kind, reference)
        return Write("Put", {"pk": pk, "sk": sk} | attributes)

    def _token_key(self, kind: str, reference: TokenReference) -> tuple[str, str]:
        return keys.grant_tokens(reference.tenant_id, reference.grant_id), keys.token(kind, reference.hash)

    def _find(self, tenant_id: str, grant_id: str) -> Grant | None:
        item = self._table.get(keys.grants(tenant_id), grant_id)
        return None if item is None else _grant(item)

    def _require_resource(self, grant: Grant, resource: str) -> None:
        if resource and resource != grant.resource:
            raise OAuthError("invalid_target", "resource is not that of the authorization request.")

    def _require_authorization(self, grant: Grant) -> None:
        if not self._is_authorized(grant):
            self._revoke(grant.tenant_id, grant.id)
            raise OAuthError("invalid_grant", "The key that allowed this grant was revoked, or lost its role.")

    def _is_authorized(self, grant: Grant) -> bool:
        return not grant.key_id or self._keys.allows(grant.key_id, grant.tenant_id, grant.role)

    def _repeated(self, reference: TokenReference) -> OAuthError:
        """Return the refusal of a refresh token that another request has just used. The grant lives."""
        count(oauth_repeats=1)
        logger.info("repeated refresh", extra={"grant_id": reference.grant_id})
        return OAuthError("invalid_grant", "Another request has just used this refresh token: use its tokens.")

    def _replayed(self, reference: TokenReference, text: str) -> OAuthError:
        """Revoke the grant, because its code or token was used twice: one of the users may be a thief."""
        grant = self._find(reference.tenant_id, reference.grant_id)
        if grant and not grant.revoked_at:
            self._revoke(grant.tenant_id, grant.id)
            count(oauth_replays=1)
            logger.warning("replay", extra={"grant_id": grant.id, "used_twice": text})
        return OAuthError("invalid_grant", f"This {text} was used before. The grant is revoked: sign in again.")

    def _revoke(self, tenant_id: str, grant_id: str) -> Grant | None:
        revocation = Write(
            "Update",
            {"pk": keys.grants(tenant_id), "sk": grant_id},
            expression="SET revoked_at = if_not_exists(revoked_at, :now)",
            condition=_STORED,
            values={":now": iso_time(self._clock())},
        )
        try:
            return _grant(self._table.write(revocation))
        except ConditionFailed:
            return None  # it has expired meanwhile


def _name(reference: TokenReference) -> str:
    """Return the name of a grant among those of all tenants."""
    return f"{reference.tenant_id}#{reference.grant_id}"


def _is_recent(used_at: str, now: float) -> bool:
    return lasts(datetime.fromisoformat(used_at).timestamp() + REPEAT_SECONDS, now, REPEAT_SECONDS)


def _proves(verifier: str, challenge: str) -> bool:
    if not _VERIFIER.fullmatch(verifier):
        return False
    digest = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
    return hmac.compare_digest(digest, challenge)


def _grant(item: Item) -> Grant:
    return from_item(Grant, item | {"id": item["sk"], "tenant_id": item["pk"].removesuffix(keys.GRANTS)})
