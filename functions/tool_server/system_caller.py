"""tool-server/system/caller: the caller as the server knows it, so that clients offer what it may do."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from api.deployment import MODERATORS, lambda_function
from api.handler import method
from shared.platform.config import config
from shared.rpc.caller import ROLES, Caller, Role
from shared.rpc.method import Params


@dataclass(frozen=True, slots=True)
class CallerDescription:
    """The caller's name, tenant and rights."""

    sub: Annotated[str, Field(description="the key's id, or the person's name at the identity provider")]
    tenant_id: Annotated[str, Field(description="the tenant whose data the caller sees")]
    roles: Annotated[list[Role], Field(description="the roles that the caller holds, included ones too")]
    is_moderator: Annotated[bool, Field(description="true if the caller may change and delete shared experiences")]


@lambda_function(MODERATORS)
@method("tool-server/system/caller", role="reader")
def handler(_params: Params, caller: Caller) -> CallerDescription:
    """Describe the caller."""
    roles: list[Role] = [role for role in ROLES if caller.holds(role)]
    is_moderator = "admin" in roles and caller.tenant_id == config().moderators_tenant
    return CallerDescription(caller.sub, caller.tenant_id, roles, is_moderator)
