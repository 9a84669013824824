"""Activation codes: six digits that a board shows until an operator claims it.

A board keeps its code from one check-in to the next. A code belongs to a slot, its remainder by the number of slots, so
codes are unique, and no more are claimable at once than there are slots. Each source address has slots of its own too.
A board that finds no free slot shows UNCLAIMABLE, and nothing is stored of it.
"""

from __future__ import annotations

import hashlib
import hmac
import random
import secrets
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from shared.aws.dynamodb import ConditionFailed, Keys, Write, from_item, to_item
from shared.devices import keys
from shared.devices.registry import devices_table
from shared.platform.clock import lasts, latest
from shared.platform.config import config

if TYPE_CHECKING:
    from collections.abc import Callable

    from shared.aws.dynamodb import Item, Table
    from shared.devices.boards import Board

UNCLAIMABLE: Final = "000000"
"""The code that no board can be claimed by."""
CODE_SECONDS: Final = 900
SLOTS: Final = 500
"""Codes at once. A tenant may try 60 in an hour, and so meets one of 500 among a million with a chance of 3 %."""
_PROLONGED_BELOW_SECONDS: Final = 600
"""A code that a board has just shown lives at least this long."""
_CODES: Final = 10**6
_ATTEMPTS: Final = 20
_FREE: Final = "attribute_not_exists(pk) OR expires_at <= :now OR expires_at > :latest"
_TAKEN: Final = "device_id = :device_id AND expires_at > :now AND expires_at <= :latest"


@dataclass(frozen=True, slots=True)
class WaitingBoard:
    """A board that shows a code."""

    device_id: str
    pair_hash: str
    code: str
    source: str
    """The hash of the address that it checked in from."""
    slot: int
    """Its place among the boards from this address."""
    expires_at: int


class ActivationCodes:
    """The codes of all boards that wait to be claimed."""

    def __init__(
        self, table: Table, *, slots_by_address: int, slots: int = SLOTS, clock: Callable[[], float] = time.time
    ) -> None:
        self._table = table
        self._slots = slots
        self._slots_by_address = slots_by_address
        self._clock = clock

    def code_of(self, board: Board, address: str) -> str:
        """Return the code that the board shows, a new one if it has none. Prolong it if it expires soon."""
        source = hashlib.sha256(address.encode()).hexdigest()[:32]
        for _ in range(_ATTEMPTS):
            now = int(self._clock())
            waiting = self._read(board.device_id)
            if waiting and lasts(waiting.expires_at, now, CODE_SECONDS):
                if not hmac.compare_digest(waiting.pair_hash, board.pair_hash):
                    return UNCLAIMABLE
                if waiting.expires_at - now >= _PROLONGED_BELOW_SECONDS or self._prolong(waiting, now):
                    return waiting.code
            slots = self._free_slots(source, now)
            if not slots:
                return UNCLAIMABLE
            code = new_code()
            new = WaitingBoard(
                board.device_id,
                board.pair_hash,
                code,
                source,
                random.choice(slots),  # noqa: S311 - no secret
                now + CODE_SECONDS,
            )
            if self._store(new, now):
                return code
        return UNCLAIMABLE

    def find(self, code: str) -> WaitingBoard | None:
        """Return the board that shows this code."""
        item = self._table.get(*keys.code_slot(int(code) % self._slots))
        if not item or item["code"] != code or not lasts(item["expires_at"], int(self._clock()), CODE_SECONDS):
            return None
        waiting = self._read(item["device_id"])
        return waiting if waiting and waiting.code == code else None

    def removal(self, waiting: WaitingBoard) -> list[Write]:
        """Return the writes that remove a board's code, on condition that it is still the board's."""
        values = _bounds(int(self._clock())) | {":device_id": waiting.device_id}
        return [Write("Delete", key, condition=_TAKEN, values=values) for key in self._places(waiting)]

    def _read(self, device_id: str) -> WaitingBoard | None:
        item = self._table.get(*keys.waiting_board(device_id))
        if item is None:
            return None
        return from_item(WaitingBoard, item | {"slot": int(item["slot"]), "expires_at": int(item["expires_at"])})

    def _free_slots(self, source: str, now: int) -> list[int]:
        """Return the places at an address that no board has."""
        partition, _ = keys.address_slot(source, 0)
        pages = self._table.query(partition, Keys.after(" "), fields=("slot", "expires_at"))
        taken = {int(item["slot"]) for page in pages for item in page if lasts(item["expires_at"], now, CODE_SECONDS)}
        return [slot for slot in range(self._slots_by_address) if slot not in taken]

    def _store(self, waiting: WaitingBoard, now: int) -> bool:
        """Store a board and its code. Return False if one of its places is taken."""
        record = to_item(waiting)
        try:
            self._table.transact(
                *(Write("Put", key | record, condition=_FREE, values=_bounds(now)) for key in self._places(waiting))
            )
        except ConditionFailed:
            return False
        return True

    def _prolong(self, waiting: WaitingBoard, now: int) -> bool:
        """Prolong a code. If one of its places is no longer the board's, remove the code and return False."""
        values = _bounds(now) | {":device_id": waiting.device_id, ":expiry": now + CODE_SECONDS}
        places = self._places(waiting)
        try:
            self._table.transact(*(Write("Update", key, "SET expires_at = :expiry", _TAKEN, values) for key in places))
        except ConditionFailed:  # the code was claimed meanwhile, or has lost a place
            self._table.write(Write("Delete", places[0]))
            return False
        return True

    def _places(self, waiting: WaitingBoard) -> list[Item]:
        """Return the keys of the board's three items: its own, that of its code, and its place at its address."""
        places = (
            keys.waiting_board(waiting.device_id),
            keys.code_slot(int(waiting.code) % self._slots),
            keys.address_slot(waiting.source, waiting.slot),
        )
        return [{"pk": pk, "sk": sk} for pk, sk in places]


def _bounds(now: int) -> dict[str, Any]:
    return {":now": now, ":latest": latest(now, CODE_SECONDS)}


def new_code() -> str:
    """Return a random code, never UNCLAIMABLE."""
    return f"{1 + secrets.randbelow(_CODES - 1):06}"


def activation_codes() -> ActivationCodes:
    """Return the codes in the configured table."""
    return ActivationCodes(devices_table(), slots_by_address=config().address_waiting_boards)
