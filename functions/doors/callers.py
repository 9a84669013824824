"""Who stands at the door: what the gateway's authorizer established, or everyone on an open machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shared.config import config
from shared.rpc.caller import LOCAL, Caller
from shared.rpc.errors import NotSignedIn

if TYPE_CHECKING:
    from collections.abc import Mapping


def caller_of(authorizer: Mapping[str, Any] | None) -> Caller:
    """The caller that the authorizer's context names."""
    if config().auth == "open":
        return LOCAL
    if not authorizer or authorizer.get("refused"):
        raise NotSignedIn
    roles = str(authorizer["roles"]).split(",")
    return Caller.from_record({"sub": authorizer["sub"], "roles": roles, "tenant_id": authorizer["tenant_id"]})
