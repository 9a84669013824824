"""Which devices there are, whose they are, and what lets them in."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from shared.clock import now
from shared.config import config
from shared.devices import keys
from shared.devices.ids import may_be_device, may_be_registered
from shared.dynamodb import ConditionFailed, Keys, Table, Write
from shared.rpc import cursor as cursors
from shared.rpc.caller import LOCAL
from shared.rpc.errors import Conflict, NotFound, NotSignedIn
from shared.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shared.dynamodb import Item

Downlink = Literal["direct", "publish"]
"""How a device is reached: by a direct message, or by publishing to what it has subscribed to."""

_FREE: Final = "attribute_not_exists(password_hash) OR attribute_exists(revoked_at)"
"""That nobody holds a password with which the device is let in."""


@dataclass(frozen=True, slots=True)
class RegisteredDevice:
    """What is known of a device; its password is known to its holder alone."""

    id: str
    tenant_id: str
    name: str
    downlink: Downlink
    created_at: str
    revoked_at: str | None = None


class DeviceRegistry:
    """Every tenant's devices."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def register(
        self, tenant_id: str, device_id: str, *, name: str = "", downlink: Downlink = "direct"
    ) -> tuple[RegisteredDevice, str]:
        """A device that may connect from now on, and its password, which is nowhere else.

        Its id must be new, a revoked device's, or that of one that has only appeared; so a new password is had by
        revoking first.
        """
        if not may_be_registered(device_id):
            raise ValueError(f"'{device_id}' cannot be a device's id")
        password = secrets.token_hex(32)
        item = _item(tenant_id, device_id, name or device_id, downlink) | {"password_hash": _hash(password.encode())}
        before = self.owner(device_id)
        writes = [self._owning(tenant_id, device_id, before), Write("Put", item, condition=_FREE)]
        if before not in (None, tenant_id):
            writes.append(Write("Delete", {"pk": keys.devices(before), "sk": device_id}, condition=_FREE))
        try:
            self._table.transact(*writes)
        except ConditionFailed:
            raise Conflict("A device with this id is registered already.", code="ALREADY_EXISTS") from None
        return _device(tenant_id, item), password

    def appear(self, device_id: str) -> RegisteredDevice | None:
        """The device that has connected under this id; where everyone is let in, it is made one of tenant `local`."""
        found = self.known(device_id)
        if found or config().auth != "open" or not may_be_device(device_id):
            return found
        item = _item(LOCAL.tenant_id, device_id, device_id, "direct")
        new = Write("Put", item, condition="attribute_not_exists(pk)")
        try:
            self._table.transact(self._owning(LOCAL.tenant_id, device_id, None), new)
        except ConditionFailed:  # it connects twice at once
            return self.known(device_id)
        return _device(LOCAL.tenant_id, item)

    def owner(self, device_id: str) -> str | None:
        """The tenant whose device this is."""
        item = self._table.get(keys.owner(device_id), keys.OWNER) if may_be_device(device_id) else None
        return item["tenant_id"] if item else None

    def known(self, device_id: str) -> RegisteredDevice | None:
        """The device of this id, whoever's it is, revoked or not."""
        found = self._known(device_id)
        return _device(*found) if found else None

    def find(self, tenant_id: str, device_id: str) -> RegisteredDevice | None:
        """The tenant's device of this id, unless it was revoked."""
        item = self._table.get(keys.devices(tenant_id), device_id) if may_be_device(device_id) else None
        found = _device(tenant_id, item) if item else None
        return None if found is None or found.revoked_at else found

    def require(self, tenant_id: str, device_id: str) -> RegisteredDevice:
        """The tenant's device of this id, which must exist."""
        found = self.find(tenant_id, device_id)
        if found is None:
            raise NotFound("No device has this id.", guidance="'devices/list' shows the devices that there are.")
        return found

    def page(
        self, tenant_id: str, limit: int, cursor: str | None = None, *, with_revoked: bool = False
    ) -> tuple[list[RegisteredDevice], str | None]:
        """At most `limit` of the tenant's devices from `cursor` on, by id."""
        found: list[RegisteredDevice] = []
        after = cursors.decode(cursor, str)[0] if cursor else "\0"
        for device in self._listed(tenant_id, after, limit + 1):
            if device.revoked_at and not with_revoked:
                continue
            if len(found) == limit:
                return found, cursors.encode(found[-1].id)
            found.append(device)
        return found, None

    def revoke(self, device_id: str) -> RegisteredDevice:
        """Let the device in no more; revoking again changes nothing."""
        tenant_id = self.owner(device_id)
        revoking = Write(
            "Update",
            {"pk": keys.devices(tenant_id or ""), "sk": device_id},
            expression="SET revoked_at = if_not_exists(revoked_at, :now)",
            condition="attribute_exists(pk)",
            values={":now": now()},
        )
        try:
            if tenant_id is None:
                raise ConditionFailed
            return _device(tenant_id, self._table.write(revoking))
        except ConditionFailed:
            raise NotFound("No device has this id; 'kho devices list' shows the ids.") from None

    def verify(self, device_id: str, user_name: str, password: bytes) -> RegisteredDevice:
        """The device that has this id and this password, or NotSignedIn; its user name is its id.

        What follows a '?' in a user name is for IoT Core.
        """
        found = self._known(device_id) if user_name.partition("?")[0] == device_id else None
        known_hash = found[1].get("password_hash", "") if found else ""
        # The password is random and long: a plain hash cannot be turned back, nor guessed.
        if not found or not hmac.compare_digest(known_hash, _hash(password)):
            raise NotSignedIn("No device has this id and this password.")
        device = _device(*found)
        if device.revoked_at:
            logger.info("device refused", extra={"device_id": device_id, "reason": "revoked"})
            raise NotSignedIn("This device is revoked.")
        return device

    def _known(self, device_id: str) -> tuple[str, Item] | None:
        tenant_id = self.owner(device_id)
        item = self._table.get(keys.devices(tenant_id), device_id) if tenant_id else None
        return (tenant_id, item) if tenant_id and item else None

    def _listed(self, tenant_id: str, after: str, at_once: int) -> Iterator[RegisteredDevice]:
        while True:
            pages = self._table.query(keys.devices(tenant_id), Keys.after(after), limit=at_once)
            devices = [_device(tenant_id, item) for page in pages for item in page]
            yield from devices
            if len(devices) < at_once:
                return
            after = devices[-1].id

    def _owning(self, tenant_id: str, device_id: str, before: str | None) -> Write:
        """That the device is the tenant's from now on, as long as it is whose it was before."""
        return Write(
            "Put",
            {"pk": keys.owner(device_id), "sk": keys.OWNER, "tenant_id": tenant_id},
            condition="tenant_id = :before" if before else "attribute_not_exists(pk)",
            values={":before": before} if before else {},
        )


def registry() -> DeviceRegistry:
    """This process's registry."""
    return DeviceRegistry(Table(config().devices_table))


def _item(tenant_id: str, device_id: str, name: str, downlink: Downlink) -> Item:
    return {
        "pk": keys.devices(tenant_id),
        "sk": device_id,
        "name": name,
        "downlink": downlink,
        "created_at": now(),
    }


def _device(tenant_id: str, item: Item) -> RegisteredDevice:
    return RegisteredDevice(
        id=item["sk"],
        tenant_id=tenant_id,
        name=item["name"],
        downlink=item["downlink"],
        created_at=item["created_at"],
        revoked_at=item.get("revoked_at"),
    )


def _hash(password: bytes) -> str:
    return hashlib.sha256(password).hexdigest()


def devices_table() -> Table:
    """Where what is known of devices lies."""
    return Table(config().devices_table)
