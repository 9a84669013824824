"""The device registry: devices, their tenants, and their passwords."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from shared.aws.dynamodb import ConditionFailed, Keys, Table, Write, from_item
from shared.devices import keys
from shared.devices.board_passwords import is_board_password
from shared.devices.ids import may_be_device, may_be_registered
from shared.platform.clock import now
from shared.platform.config import config
from shared.platform.telemetry import logger
from shared.rpc import cursor as cursors
from shared.rpc.caller import LOCAL
from shared.rpc.errors import Conflict, NotFound, NotSignedIn

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from shared.aws.dynamodb import Item
    from shared.devices.activation_codes import WaitingBoard
    from shared.devices.boards import Board

Downlink = Literal["direct", "publish"]
"""The way to reach a device: by direct message, or by publishing to the topic that it subscribed to."""

_GENERATION_BITS: Final = 63
_UNCLAIMED: Final = (
    "(attribute_not_exists(password_hash) AND attribute_not_exists(pair_hash)) OR attribute_exists(revoked_at)"
)
"""Condition: no valid password exists for the device."""


@dataclass(frozen=True, slots=True)
class RegisteredDevice:
    """A registered device, without its password."""

    id: str
    tenant_id: str
    name: str
    downlink: Downlink
    created_at: str
    revoked_at: str | None = None


@dataclass(frozen=True, slots=True)
class ClaimedBoard:
    """A board that belongs to a tenant, and the generation of its password."""

    device: RegisteredDevice
    generation: int


class DeviceRegistry:
    """The devices of all tenants."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def register(
        self, tenant_id: str, device_id: str, *, name: str = "", downlink: Downlink = "direct"
    ) -> tuple[RegisteredDevice, str]:
        """Register a device and return it with its password, which is stored only as a hash.

        The id must be new, revoked, or of a device that was only registered on connect. To change a password,
        revoke the device first.
        """
        if not may_be_registered(device_id):
            raise ValueError(f"'{device_id}' cannot be a device's id")
        password = secrets.token_hex(32)
        item = _item(tenant_id, device_id, name or device_id, downlink) | {"password_hash": _hash(password.encode())}
        try:
            self._table.transact(*self._ownership(tenant_id, item))
        except ConditionFailed:
            raise Conflict("A device with this id is registered already.", code="ALREADY_EXISTS") from None
        return _device(tenant_id, item), password

    def claim(
        self, tenant_id: str, waiting: WaitingBoard, code_removal: Sequence[Write], *, name: str, replaces: str = ""
    ) -> RegisteredDevice:
        """Give a waiting board to a tenant, remove its code, and revoke the device that it replaces."""
        item = _item(tenant_id, waiting.device_id, name, "direct")
        # Random, not a time: clocks repeat themselves, and a password of before must never be valid again.
        item |= {"pair_hash": waiting.pair_hash, "generation": secrets.randbits(_GENERATION_BITS)}
        replaced = [self._revocation(tenant_id, replaces)] if replaces else []
        try:
            self._table.transact(*self._ownership(tenant_id, item), *code_removal, *replaced)
        except ConditionFailed:
            raise Conflict(
                "The board was claimed or restarted meanwhile.",
                guidance="'devices/list' shows whether it is yours; else claim the code that the board shows now.",
            ) from None
        return _device(tenant_id, item)

    def find_board(self, board: Board) -> ClaimedBoard | None:
        """Return the claimed board with this address and Client-Id, unless it is revoked."""
        entry = self._find_item(board.device_id)
        if entry is None or "revoked_at" in entry[1]:
            return None
        if not hmac.compare_digest(entry[1].get("pair_hash", ""), board.pair_hash):
            return None
        return ClaimedBoard(_device(*entry), int(entry[1]["generation"]))

    def rotate(self, device_id: str) -> RegisteredDevice:
        """Make the password of a claimed board invalid. The board gets the next one when it checks in."""
        tenant_id = self.owner(device_id)
        condition = "attribute_exists(pair_hash) AND attribute_not_exists(revoked_at)"
        try:
            if tenant_id is None:
                raise ConditionFailed
            key = {"pk": keys.devices(tenant_id), "sk": device_id}
            write = Write("Update", key, "SET generation = generation + :one", condition, {":one": 1})
            return _device(tenant_id, self._table.write(write))
        except ConditionFailed:
            raise NotFound("No claimed board has this id; 'kho devices list' shows the ids.") from None

    def find_or_register(self, device_id: str) -> RegisteredDevice | None:
        """Return the device that connects with this id.

        In open mode an unknown device is registered for tenant `local`.
        """
        device = self.find_any_tenant(device_id)
        if device or config().auth != "open" or not may_be_device(device_id):
            return device
        item = _item(LOCAL.tenant_id, device_id, device_id, "direct")
        new = Write("Put", item, condition="attribute_not_exists(pk)")
        try:
            self._table.transact(self._assign_owner(LOCAL.tenant_id, device_id, None), new)
        except ConditionFailed:  # a concurrent connect registered it
            return self.find_any_tenant(device_id)
        return _device(LOCAL.tenant_id, item)

    def owner(self, device_id: str) -> str | None:
        """Return the tenant that owns the device."""
        item = self._table.get(keys.owner(device_id), keys.OWNER) if may_be_device(device_id) else None
        return item["tenant_id"] if item else None

    def find_any_tenant(self, device_id: str) -> RegisteredDevice | None:
        """Return the device of this id, of any tenant, revoked or not."""
        entry = self._find_item(device_id)
        return _device(*entry) if entry else None

    def find(self, tenant_id: str, device_id: str) -> RegisteredDevice | None:
        """Return the tenant's device of this id, unless it is revoked."""
        item = self._table.get(keys.devices(tenant_id), device_id) if may_be_device(device_id) else None
        device = _device(tenant_id, item) if item else None
        return None if device is None or device.revoked_at else device

    def require(self, tenant_id: str, device_id: str) -> RegisteredDevice:
        """Return the tenant's device of this id or raise NotFound."""
        device = self.find(tenant_id, device_id)
        if device is None:
            raise NotFound("No device has this id.", guidance="'devices/list' lists the devices.")
        return device

    def page(
        self, tenant_id: str, limit: int, cursor: str | None = None, *, with_revoked: bool = False
    ) -> tuple[list[RegisteredDevice], str | None]:
        """Return at most `limit` of the tenant's devices from `cursor` on, ordered by id."""
        devices: list[RegisteredDevice] = []
        after = cursors.decode_sort_key(cursor) if cursor else "\0"
        for device in self._iterate(tenant_id, after, limit + 1):
            if device.revoked_at and not with_revoked:
                continue
            if len(devices) == limit:
                return devices, cursors.encode(devices[-1].id)
            devices.append(device)
        return devices, None

    def revoke(self, device_id: str) -> RegisteredDevice:
        """Revoke the device. Revoking it again changes nothing."""
        tenant_id = self.owner(device_id)
        try:
            if tenant_id is None:
                raise ConditionFailed
            return _device(tenant_id, self._table.write(self._revocation(tenant_id, device_id)))
        except ConditionFailed:
            raise NotFound("No device has this id; 'kho devices list' shows the ids.") from None

    def verify(
        self, device_id: str, user_name: str, password: bytes, *, accepts_boards: bool = True
    ) -> RegisteredDevice:
        """Return the device with this id and password or raise NotSignedIn.

        The user name is the device's id; IoT Core uses the part after a '?'.
        """
        entry = self._find_item(device_id) if user_name.partition("?")[0] == device_id else None
        if entry and not accepts_boards and "pair_hash" in entry[1]:
            entry = None
        if not entry or not _is_password(password, entry[1]):
            raise NotSignedIn("No device has this id and this password.")
        device = _device(*entry)
        if device.revoked_at:
            logger.info("device refused", extra={"device_id": device_id, "reason": "revoked"})
            raise NotSignedIn("This device is revoked.")
        return device

    def _ownership(self, tenant_id: str, item: Item) -> list[Write]:
        """Return the writes that give a device to a tenant if no valid password exists for it."""
        device_id = item["sk"]
        before = self.owner(device_id)
        writes = [self._assign_owner(tenant_id, device_id, before), Write("Put", item, condition=_UNCLAIMED)]
        if before not in (None, tenant_id):
            writes.append(Write("Delete", {"pk": keys.devices(before), "sk": device_id}, condition=_UNCLAIMED))
        return writes

    def _revocation(self, tenant_id: str, device_id: str) -> Write:
        return Write(
            "Update",
            {"pk": keys.devices(tenant_id), "sk": device_id},
            expression="SET revoked_at = if_not_exists(revoked_at, :now)",
            condition="attribute_exists(pk)",
            values={":now": now()},
        )

    def _find_item(self, device_id: str) -> tuple[str, Item] | None:
        tenant_id = self.owner(device_id)
        item = self._table.get(keys.devices(tenant_id), device_id) if tenant_id else None
        return (tenant_id, item) if tenant_id and item else None

    def _iterate(self, tenant_id: str, after: str, page_size: int) -> Iterator[RegisteredDevice]:
        while True:
            pages = self._table.query(keys.devices(tenant_id), Keys.after(after), limit=page_size)
            devices = [_device(tenant_id, item) for page in pages for item in page]
            yield from devices
            if len(devices) < page_size:
                return
            after = devices[-1].id

    def _assign_owner(self, tenant_id: str, device_id: str, before: str | None) -> Write:
        """Return the write that assigns the device to the tenant if its owner is still `before`."""
        return Write(
            "Put",
            {"pk": keys.owner(device_id), "sk": keys.OWNER, "tenant_id": tenant_id},
            condition="tenant_id = :before" if before else "attribute_not_exists(pk)",
            values={":before": before} if before else {},
        )


def registry() -> DeviceRegistry:
    """Return the registry on the configured table."""
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
    return from_item(RegisteredDevice, item | {"id": item["sk"], "tenant_id": tenant_id})


def _is_password(password: bytes, item: Item) -> bool:
    if "pair_hash" in item:
        return is_board_password(password, item["sk"], int(item["generation"]))
    # The password is random and long, so a plain hash cannot be reversed or guessed.
    return hmac.compare_digest(item.get("password_hash", ""), _hash(password))


def _hash(password: bytes) -> str:
    return hashlib.sha256(password).hexdigest()


def devices_table() -> Table:
    """Return the configured devices table."""
    return Table(config().devices_table)
