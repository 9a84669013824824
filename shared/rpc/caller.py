"""The caller: subject, roles and tenant, with which every key and filter begins (tenant isolation)."""

from dataclasses import dataclass, field
from typing import Any, Final, Literal, Self, get_args

from shared.rpc.errors import NotAllowed, NotSignedIn
from shared.rpc.field_messages import worded

Role = Literal["reader", "writer", "operator", "admin"]
ROLES: tuple[Role, ...] = get_args(Role)
TENANT_ID: Final = r"[A-Za-z0-9](?:[A-Za-z0-9._@:-]{0,126}[A-Za-z0-9])?"
"""The pattern of tenant ids. '#' separates the parts of keys in every table: 'a#b' could pass for a part of 'a'."""
TENANT_PATTERN: Final = worded(f"^{TENANT_ID}$", "letters and digits, with . _ @ : - between them")


@dataclass(frozen=True, slots=True)
class Caller:
    """An authenticated subject with its roles and tenant."""

    sub: str
    roles: frozenset[Role]
    tenant_id: str
    labels: tuple[str, ...] = ()
    """The caller's description of itself, only for logs: it grants nothing."""
    source: str = field(default="", compare=False)
    """The address that the request comes from, where anonymous callers are served."""

    def holds(self, role: Role) -> bool:
        """Return True if the caller holds `role` or one that includes it."""
        return any(ROLES.index(own) >= ROLES.index(role) for own in self.roles)

    def require(self, role: Role) -> None:
        """Raise NotAllowed unless the caller holds `role` or one that includes it."""
        if self == ANONYMOUS:
            raise NotSignedIn
        if not self.holds(role):
            raise NotAllowed(
                f"This method needs the role '{role}'.",
                details={"needed": role, "held": sorted(self.roles)},
            )

    def record(self) -> dict[str, Any]:
        """Return the caller as an endpoint sends it to a function."""
        return {
            "sub": self.sub,
            "roles": sorted(self.roles),
            "tenant_id": self.tenant_id,
            "labels": list(self.labels),
            "source": self.source,
        }

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Self:
        """Return the caller that an endpoint sent."""
        roles = frozenset(role for role in ROLES if role in record["roles"])
        return cls(record["sub"], roles, record["tenant_id"], tuple(record.get("labels", ())), record.get("source", ""))


ANONYMOUS = Caller("anonymous", frozenset(), "")
"""A caller without credentials: no tenant, no role, served only by anonymous methods."""
LOCAL = Caller("local", frozenset(ROLES), "local")
"""Every caller of a `kho serve` without keys."""
