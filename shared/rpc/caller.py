"""Who is calling: subject, roles, tenant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from shared.rpc.errors import NotAllowed, NotSignedIn

Role = Literal["reader", "writer", "operator", "admin"]
ROLES: tuple[Role, ...] = get_args(Role)
TENANT_ID: Final = r"[A-Za-z0-9](?:[A-Za-z0-9._@:-]{0,126}[A-Za-z0-9])?"
"""What a tenant can be called. '#' parts the keys in every table: with it, 'a#b' could pass for a part of 'a'."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The subject, roles and tenant that a door has established."""

    sub: str
    roles: frozenset[Role]
    tenant_id: str
    labels: tuple[str, ...] = ()
    """What the caller says of itself, for logs alone: it grants nothing."""

    def holds(self, role: Role) -> bool:
        """Whether the caller holds `role` or one that includes it."""
        return any(ROLES.index(held) >= ROLES.index(role) for held in self.roles)

    def require(self, role: Role) -> None:
        """Refuse unless the caller holds `role` or one that includes it."""
        if self == ANONYMOUS:
            raise NotSignedIn
        if not self.holds(role):
            raise NotAllowed(
                f"This method needs the role '{role}'.",
                details={"needed": role, "held": sorted(self.roles)},
            )

    def record(self) -> dict[str, Any]:
        """This caller as it travels from a door to a function."""
        return {
            "sub": self.sub,
            "roles": sorted(self.roles),
            "tenant_id": self.tenant_id,
            "labels": list(self.labels),
        }

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Caller:
        """The caller that a door has sent along."""
        roles = frozenset(role for role in ROLES if role in record["roles"])
        return cls(record["sub"], roles, record["tenant_id"], tuple(record.get("labels", ())))


ANONYMOUS = Caller("anonymous", frozenset(), "")
"""Whoever comes without credentials: no tenant, no role, served only by methods that are open to the anonymous."""
LOCAL = Caller("local", frozenset(ROLES), "local")
"""Everyone, where one machine is served without keys."""
