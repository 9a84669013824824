"""Notifications of devices: the newest thousand, for a week, each once."""

from __future__ import annotations

import time

import pytest

from shared.config import config
from shared.devices import notifications
from shared.devices.notifications import Notifications
from shared.devices.protocol import DeviceNotification
from shared.dynamodb import Table
from shared.rpc.errors import InvalidParams

DAY_MS = 24 * 3600 * 1000


@pytest.fixture
def kept(tenant: str, monkeypatch: pytest.MonkeyPatch) -> Notifications:
    """Return a device's notifications, limited to ten."""
    monkeypatch.setattr(notifications, "MAX_NOTIFICATIONS", 10)
    return Notifications(Table(config().devices_table), tenant, "lamp")


def tell(kept: Notifications, number: int, at_ms: int) -> None:
    kept.add(DeviceNotification("notifications/state_changed", {"number": number}), at_ms)


def told(kept: Notifications, limit: int = 1000) -> list[int]:
    """Return the numbers listed by pages of this size."""
    numbers: list[int] = []
    cursor = None
    while True:
        page, cursor = kept.page(limit, cursor)
        assert len(page) <= limit
        for each in page:
            assert isinstance(each.params, dict)
            numbers.append(each.params["number"])
        if cursor is None:
            return numbers


def test_notifications_are_listed_newest_first_across_pages(kept: Notifications) -> None:
    now = int(time.time() * 1000)
    for number in range(14):
        tell(kept, number, now + number)
    newest = list(range(13, 3, -1))
    assert told(kept) == told(kept, 3) == told(kept, 1) == told(kept, 10) == newest
    kept.trim()
    assert told(kept) == newest
    assert told(Notifications(kept._table, "another", "lamp")) == []


def test_repeated_delivery_is_deduplicated(kept: Notifications) -> None:
    now = int(time.time() * 1000)
    for _ in range(3):
        tell(kept, 1, now)
    tell(kept, 2, now)
    tell(kept, 1, now + 1)
    assert sorted(told(kept)) == [1, 1, 2]


def test_notifications_expire_after_a_week(kept: Notifications) -> None:
    now = int(time.time() * 1000)
    tell(kept, 1, now - 7 * DAY_MS - 1000)
    tell(kept, 2, now - 6 * DAY_MS)
    assert told(kept) == [2]


def test_notification_values_round_trip(kept: Notifications) -> None:
    params = {"float": 0.1, "large": 2**70, "text": "đèn\0💡", "none": None, "list": [[], {}]}
    kept.add(DeviceNotification("custom", params), int(time.time() * 1000))
    (page, _) = kept.page(1, None)
    assert (page[0].method, page[0].params) == ("custom", params)


@pytest.mark.parametrize("cursor", ["x", "WyJhIiwgMV0", "WzFd"])
def test_invalid_cursors(kept: Notifications, cursor: str) -> None:
    with pytest.raises(InvalidParams):
        kept.page(1, cursor)
