"""What a device tells unasked: its newest thousand notifications, kept for a week, never answered."""

from __future__ import annotations

import hashlib
import json
import random
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from shared.clock import iso_time
from shared.devices import keys
from shared.dynamodb import Keys, Write
from shared.rpc import cursor as cursors
from shared.rpc.response_size import MAX_PAGE_BYTES, answer_bytes
from shared.rpc.strict_json import compact

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shared.devices.protocol import DeviceNotification
    from shared.dynamodb import Item, Table

KEPT: Final = 1000
_KEPT_SECONDS: Final = 7 * 24 * 3600
_TIDIED_EVERY: Final = 50


@dataclass(frozen=True, slots=True)
class StoredNotification:
    """One notification, and when it came."""

    method: str
    params: dict[str, Any] | list[Any]
    at: str


class Notifications:
    """One device's notifications."""

    def __init__(self, table: Table, tenant_id: str, device_id: str) -> None:
        self._table = table
        self._partition = keys.device(tenant_id, device_id)

    def keep(self, notification: DeviceNotification, at_ms: int) -> None:
        """Keep a notification that came at this moment; one that is delivered again is the same."""
        params = compact(notification.params)
        same = hashlib.sha256(compact([notification.method, params]).encode("utf-8")).hexdigest()[:16]
        item = {
            "pk": self._partition,
            "sk": keys.notification(f"{at_ms:013d}", same),
            "method": notification.method,
            # As text: a number that JSON has may be none for the store.
            "params": params,
            "expires_at": at_ms // 1000 + _KEPT_SECONDS,
        }
        self._table.write(Write("Put", item))
        if random.randrange(_TIDIED_EVERY) == 0:  # noqa: S311 - no secret
            self.tidy()

    def page(self, limit: int, cursor: str | None) -> tuple[list[StoredNotification], str | None]:
        """Notifications from `cursor` on, newest first, and a cursor where more follow."""
        after, seen = cursors.decode(cursor, str, int) if cursor else (None, 0)
        if after is not None and not after.startswith(keys.NOTIFICATION):
            raise cursors.stale()
        found: list[StoredNotification] = []
        last, room = "", MAX_PAGE_BYTES
        for item in self._newest(after, min(limit, KEPT - seen) + 1):
            told = _notification(item)
            room -= answer_bytes({"method": told.method, "params": told.params, "at": told.at})
            if len(found) == limit or (found and room < 0):
                return found, cursors.encode(last, seen + len(found))
            if seen + len(found) == KEPT:
                break
            found.append(told)
            last = item["sk"]
        return found, None

    def tidy(self) -> None:
        """Delete all but the newest thousand."""
        pages = self._table.query(self._partition, Keys.beginning(keys.NOTIFICATION), descending=True)
        old = [item["sk"] for page in pages for item in page][KEPT:]
        self._table.delete_all((self._partition, sk) for sk in old)

    def _newest(self, before: str | None, limit: int) -> Iterator[Item]:
        last = before if before is not None else keys.NOTIFICATION + "~"
        # Those that are expired, and what the cursor names, take a place.
        wanted = Keys.between(keys.NOTIFICATION, last)
        for page in self._table.query(self._partition, wanted, descending=True):
            for item in page:
                if item["sk"] == before or int(item["expires_at"]) <= time.time():
                    continue
                yield item
                limit -= 1
                if limit == 0:
                    return


def _notification(item: Item) -> StoredNotification:
    at_ms = int(item["sk"].removeprefix(keys.NOTIFICATION).partition("#")[0])
    at = iso_time(at_ms / 1000)
    return StoredNotification(item["method"], json.loads(item["params"]), at)
