"""Device notifications: the newest thousand, kept for a week."""

from __future__ import annotations

import hashlib
import json
import random
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from shared.aws.dynamodb import Keys, Write
from shared.devices import keys
from shared.platform.clock import iso_time, latest
from shared.rpc import cursor as cursors
from shared.rpc.response_size import MAX_PAGE_BYTES, answer_bytes
from shared.rpc.strict_json import compact

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from shared.aws.dynamodb import Item, Table
    from shared.devices.protocol import DeviceNotification

MAX_NOTIFICATIONS: Final = 1000
_RETENTION_SECONDS: Final = 7 * 24 * 3600
_TRIM_EVERY: Final = 50


@dataclass(frozen=True, slots=True)
class StoredNotification:
    """One notification and its time of arrival."""

    method: str
    params: dict[str, Any] | list[Any]
    at: str


class Notifications:
    """One device's notifications."""

    def __init__(self, table: Table, tenant_id: str, device_id: str) -> None:
        self._table = table
        self._partition = keys.device(tenant_id, device_id)

    def add(
        self, notification: DeviceNotification, at_ms: int, sequence: int = 0, events: Sequence[Write] = ()
    ) -> None:
        """Store a notification with its time of arrival and its place in that millisecond, and the events of it.

        Storing a redelivered one again has no effect.
        """
        params = compact(notification.params)
        digest = hashlib.sha256(compact([notification.method, params]).encode("utf-8")).hexdigest()[:16]
        item = {
            "pk": self._partition,
            "sk": keys.notification(f"{at_ms:013d}", f"{sequence:06d}-{digest}"),
            "method": notification.method,
            # Stored as text: DynamoDB does not accept every JSON number.
            "params": params,
            "expires_at": at_ms // 1000 + _RETENTION_SECONDS,
        }
        if events:
            self._table.transact(Write("Put", item), *events)
        else:
            self._table.write(Write("Put", item))
        if random.randrange(_TRIM_EVERY) == 0:  # noqa: S311 - no secret
            self.trim()

    def page(self, limit: int, cursor: str | None) -> tuple[list[StoredNotification], str | None]:
        """Return notifications from `cursor` on, newest first, and a cursor if more follow."""
        after, seen = cursors.decode(cursor, str, int) if cursor else (None, 0)
        if after is not None and not cursors.require_sort_key(after).startswith(keys.NOTIFICATION):
            raise cursors.stale()
        notifications: list[StoredNotification] = []
        last, remaining_bytes = "", MAX_PAGE_BYTES
        for item in self._newest(after, min(limit, MAX_NOTIFICATIONS - seen) + 1):
            notification = _notification(item)
            remaining_bytes -= answer_bytes(
                {"method": notification.method, "params": notification.params, "at": notification.at}
            )
            if len(notifications) == limit or (notifications and remaining_bytes < 0):
                return notifications, cursors.encode(last, seen + len(notifications))
            if seen + len(notifications) == MAX_NOTIFICATIONS:
                break
            notifications.append(notification)
            last = item["sk"]
        return notifications, None

    def trim(self) -> None:
        """Delete all but the newest thousand. Those of a clock that was ahead go first."""
        pages = self._table.query(self._partition, Keys.beginning(keys.NOTIFICATION), descending=True)
        newest_first = [item["sk"] for page in pages for item in page]
        bound = latest(time.time(), 0)
        newest_first.sort(key=lambda sk: _at_ms(sk) / 1000 > bound)
        self._table.delete_all((self._partition, sk) for sk in newest_first[MAX_NOTIFICATIONS:])

    def _newest(self, before: str | None, limit: int) -> Iterator[Item]:
        last = before if before is not None else keys.NOTIFICATION + "~"
        # Expired items and the cursor's own item are read but skipped.
        key_range = Keys.between(keys.NOTIFICATION, last)
        for page in self._table.query(self._partition, key_range, descending=True):
            for item in page:
                if item["sk"] == before or int(item["expires_at"]) <= time.time():
                    continue
                yield item
                limit -= 1
                if limit == 0:
                    return


def _notification(item: Item) -> StoredNotification:
    return StoredNotification(item["method"], json.loads(item["params"]), iso_time(_at_ms(item["sk"]) / 1000))


def _at_ms(sk: str) -> int:
    return int(sk.removeprefix(keys.NOTIFICATION).partition("#")[0])
