"""tool-server/system/caller: what clients learn of the caller's rights."""

from __future__ import annotations

from typing import Any

import pytest

from shared.platform.config import config
from shared.rpc.caller import ROLES, Caller, Role
from tool_server import system_caller


def description(role: Role, tenant: str) -> Any:
    caller = Caller("tester", frozenset({role}), tenant)
    call = {"method": "tool-server/system/caller", "params": {}, "caller": caller.record(), "correlation_id": "c"}
    return system_caller.handler(call, None)["result"]


@pytest.mark.parametrize("role", ROLES)
def test_roles_include_lower_ones_and_admins_of_the_operator_moderate(role: Role) -> None:
    """A caller learns its roles, and an admin of the operator's own tenant alone is a moderator."""
    own = description(role, config().moderators_tenant)
    assert own["roles"] == list(ROLES[: ROLES.index(role) + 1])
    assert own["is_moderator"] is (role == "admin")
    other = description(role, "acme")
    assert other == own | {"tenant_id": "acme", "is_moderator": False}
