"""Who stands at the door: what the gateway's authorizer established, or everyone on an open machine."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from shared.config import config
from shared.rpc.caller import ANONYMOUS, LOCAL, Caller
from shared.rpc.errors import NotSignedIn

if TYPE_CHECKING:
    from collections.abc import Mapping


def caller_from_authorizer(authorizer: Mapping[str, Any] | None) -> Caller:
    """The caller that the authorizer's context names, at a route that the gateway guards."""
    if config().auth == "open":
        return LOCAL
    if not authorizer:
        raise NotSignedIn
    if "refused" in authorizer:
        raise NotSignedIn(str(authorizer["refused"]))
    if float(authorizer.get("expires_at", "inf")) <= time.time():
        raise NotSignedIn("This key or token is expired.")  # though the gateway still remembers it
    roles = str(authorizer["roles"]).split(",")
    return Caller.from_record({"sub": authorizer["sub"], "roles": roles, "tenant_id": authorizer["tenant_id"]})


def require_authenticated(caller: Caller) -> None:
    """Refuse the anonymous."""
    if caller == ANONYMOUS:
        raise NotSignedIn


def caller_from_headers(headers: Mapping[str, str]) -> Caller:
    """The caller whom the request's own headers prove, or the anonymous, at a route that the gateway does not guard."""
    if config().auth == "open":
        return LOCAL
    authorization = headers.get("authorization", "").strip()
    if not authorization:
        return ANONYMOUS
    from shared.access.credentials import cached_verifier  # brings boto3

    return cached_verifier().verify(authorization).caller
