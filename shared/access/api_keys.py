"""API keys: created and shown once, stored as a hash, verified and revoked."""

import hashlib
import hmac
import re
import secrets
import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal

from shared.access import keys
from shared.access.models import Clock, Identity
from shared.aws.dynamodb import ConditionFailed, Item, Keys, Table, Write, from_item
from shared.platform.clock import iso_time
from shared.platform.telemetry import logger
from shared.rpc.caller import ROLES, Caller, Role
from shared.rpc.errors import NotFound, NotSignedIn

PREFIX: Final = "kho_"
_ID: Final = re.compile(r"[0-9a-f]{16}", re.ASCII)
_TEXT: Final = re.compile(r"kho_([0-9a-f]{16})_([0-9a-f]{64})", re.ASCII)

State = Literal["active", "expired", "revoked"]


@dataclass(frozen=True, slots=True)
class ApiKey:
    """One key without its secret."""

    id: str
    tenant_id: str
    role: Role
    name: str
    created_at: str
    expires_at: str | None = None
    revoked_at: str | None = None

    def state(self, now: float) -> State:
        """Return the key's state at `now`."""
        if self.revoked_at:
            return "revoked"
        ends = self.ends
        return "expired" if ends is not None and ends <= now else "active"

    @property
    def ends(self) -> float | None:
        """Return the time of expiry in seconds since 1970, or None."""
        return datetime.fromisoformat(self.expires_at).timestamp() if self.expires_at else None


class ApiKeys:
    """Every tenant's keys."""

    def __init__(self, table: Table, clock: Clock = time.time) -> None:
        self._table = table
        self._clock = clock

    def create(
        self, tenant_id: str, role: Role, *, name: str = "", expires_in: timedelta | None = None
    ) -> tuple[ApiKey, str]:
        """Create a key. Return it and its text, which is not stored; its `name` is the `sub` of its callers."""
        key_id, secret = secrets.token_hex(8), secrets.token_hex(32)
        now = self._clock()
        item = {
            "pk": keys.PARTITION,
            "sk": key_id,
            "tenant_id": tenant_id,
            "role": role,
            "name": name or f"key-{key_id}",
            "secret_hash": _hash(secret),
            "created_at": iso_time(now),
        }
        if expires_in is not None:
            item["expires_at"] = iso_time(now + expires_in.total_seconds())
        self._table.write(Write("Put", item, condition="attribute_not_exists(pk)"))
        return _key(item), f"{PREFIX}{key_id}_{secret}"

    def list_keys(self, tenant_id: str | None = None) -> list[ApiKey]:
        """List the keys of one tenant or of all tenants, oldest first."""
        pages = self._table.query(keys.PARTITION, Keys.after(" "))
        api_keys = [_key(item) for page in pages for item in page if tenant_id in (None, item["tenant_id"])]
        return sorted(api_keys, key=lambda key: (key.created_at, key.id))

    def revoke(self, key_id: str) -> ApiKey:
        """Revoke the key. Revoking it again changes nothing."""
        revocation = Write(
            "Update",
            {"pk": keys.PARTITION, "sk": key_id},
            expression="SET revoked_at = if_not_exists(revoked_at, :now)",
            condition="attribute_exists(pk)",
            values={":now": iso_time(self._clock())},
        )
        try:
            if not _ID.fullmatch(key_id):
                raise ConditionFailed
            return _key(self._table.write(revocation))
        except ConditionFailed:
            raise NotFound("No key has this id; 'kho keys list' shows the ids.") from None

    def verify(self, text: str) -> Identity:
        """Return the identity of the key with this text. Raise NotSignedIn if it is not valid."""
        key = self.authenticate(text)
        return Identity(Caller(key.name, frozenset((key.role,)), key.tenant_id), key.ends)

    def authenticate(self, text: str) -> ApiKey:
        """Return the active key with this text. Raise NotSignedIn if there is none."""
        parts = _TEXT.fullmatch(text)
        item = self._table.get(keys.PARTITION, parts[1]) if parts else None
        # The secret is random and long, so a plain hash can be neither reversed nor guessed.
        if parts is None or item is None or not hmac.compare_digest(item["secret_hash"], _hash(parts[2])):
            raise NotSignedIn("This is not a valid key.")
        key = _key(item)
        state = key.state(self._clock())
        if state != "active":
            logger.info("key refused", extra={"key_id": key.id, "reason": state})
            raise NotSignedIn(f"This key is {state}.")
        return key

    def allows(self, key_id: str, tenant_id: str, role: Role) -> bool:
        """Return True if the key is active, of this tenant, and holds `role` or one that includes it."""
        item = self._table.get(keys.PARTITION, key_id)
        if item is None:
            return False
        key = _key(item)
        active = key.state(self._clock()) == "active" and key.tenant_id == tenant_id
        return active and ROLES.index(key.role) >= ROLES.index(role)


def _key(item: Item) -> ApiKey:
    return from_item(ApiKey, item | {"id": item["sk"]})


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("ascii")).hexdigest()
