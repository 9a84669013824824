"""Authentication: the caller from the gateway's authorizer or from the request's own headers."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from shared.platform.config import config
from shared.rpc.caller import ANONYMOUS, LOCAL, Caller
from shared.rpc.errors import NotSignedIn

if TYPE_CHECKING:
    from collections.abc import Mapping

    from api.http_events import HttpRequest
    from shared.access.models import Identity


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


def authenticated_caller(request: HttpRequest) -> Caller:
    """Verify the Authorization header like `caller_from_headers`. Raise NotSignedIn if there is none."""
    caller = caller_from_headers(request)
    require_authenticated(caller)
    return caller


def require_authenticated(caller: Caller) -> None:
    """Raise NotSignedIn for an anonymous caller."""
    if caller == ANONYMOUS:
        raise NotSignedIn


def require_resource(identity: Identity, path: str = "") -> None:
    """Refuse an OAuth token at another address than the one that it is for, or at a part of Kho if it is for none."""
    public_url = config().public_url
    if identity.resource not in ("", public_url, public_url + path):
        raise NotSignedIn(
            "This token is for another address.", guidance=f"It is for {identity.resource}: sign in for this one."
        )


def caller_from_headers(request: HttpRequest) -> Caller:
    """Verify the Authorization header, for routes without an authorizer. Return ANONYMOUS if there is none."""
    if config().auth == "open":
        return LOCAL
    source = anonymous_source(request)
    authorization = request.headers.get("authorization", "").strip()
    if authorization:
        from shared.access.credentials import cached_verifier  # imports botocore

        identity = cached_verifier().verify(authorization)
        require_resource(identity, request.path)
        caller = identity.caller
    else:
        caller = ANONYMOUS
    return replace(caller, source=source)


def anonymous_source(request: HttpRequest) -> str:
    """Return the address that the request comes from. Refuse a request that came around the operator's proxy."""
    if config().auth == "open":
        return request.source_ip
    from shared.access.source_address import require_proxy, source_address

    require_proxy(request.headers)
    return source_address(request.source_ip, request.headers)
