"""Authentication: the caller from the gateway's authorizer or from the request's own headers."""

import time
from collections.abc import Mapping
from typing import Any

from shared.config import config
from shared.rpc.caller import ANONYMOUS, LOCAL, Caller
from shared.rpc.errors import NotSignedIn


def caller_from_authorizer(authorizer: Mapping[str, Any] | None) -> Caller:
    """Return the caller in the authorizer's context, for routes that have the gateway's authorizer."""
    if config().auth == "open":
        return LOCAL
    if not authorizer:
        raise NotSignedIn
    if "refused" in authorizer:
        raise NotSignedIn(str(authorizer["refused"]))
    if float(authorizer.get("expires_at", "inf")) <= time.time():
        raise NotSignedIn("This key or token is expired.")  # the gateway caches the context longer
    roles = str(authorizer["roles"]).split(",")
    return Caller.from_record({"sub": authorizer["sub"], "roles": roles, "tenant_id": authorizer["tenant_id"]})


def authenticated_caller(headers: Mapping[str, str]) -> Caller:
    """Verify the Authorization header like `caller_from_headers`. Raise NotSignedIn if there is none."""
    caller = caller_from_headers(headers)
    require_authenticated(caller)
    return caller


def require_authenticated(caller: Caller) -> None:
    """Raise NotSignedIn for an anonymous caller."""
    if caller == ANONYMOUS:
        raise NotSignedIn


def caller_from_headers(headers: Mapping[str, str]) -> Caller:
    """Verify the Authorization header, for routes without an authorizer. Return ANONYMOUS if there is none."""
    if config().auth == "open":
        return LOCAL
    authorization = headers.get("authorization", "").strip()
    if not authorization:
        return ANONYMOUS
    from shared.access.credentials import cached_verifier  # imports botocore

    return cached_verifier().verify(authorization).caller
