"""Who is calling: subject, roles, tenant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from shared.rpc.errors import NotAllowed

Role = Literal["reader", "writer", "operator", "admin"]
ROLES: tuple[Role, ...] = get_args(Role)


@dataclass(frozen=True, slots=True)
class Caller:
    """The subject, roles and tenant that a door has established."""

    sub: str
    roles: frozenset[Role]
    tenant_id: str

    def require(self, role: Role) -> None:
        """Refuse unless the caller holds `role` or one that includes it."""
        needed = ROLES.index(role)
        if not any(ROLES.index(held) >= needed for held in self.roles):
            raise NotAllowed(
                f"This method needs the role '{role}'.",
                details={"needed": role, "held": sorted(self.roles)},
            )

    def record(self) -> dict[str, Any]:
        """This caller as it travels from a door to a function."""
        return {"sub": self.sub, "roles": sorted(self.roles), "tenant_id": self.tenant_id}

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Caller:
        """The caller that a door has sent along."""
        return cls(record["sub"], frozenset(role for role in ROLES if role in record["roles"]), record["tenant_id"])


LOCAL = Caller("local", frozenset(ROLES), "local")
"""Everyone, where one machine is served without keys."""
