"""Notifications of devices: the newest thousand, for a week, each once."""

from __future__ import annotations

import time

import pytest

from shared.aws.dynamodb import Table
from shared.devices import notifications
from shared.devices.notifications import Notifications
from shared.devices.protocol import DeviceNotification
from shared.platform.config import config
from shared.rpc.errors import InvalidParams

DAY_MS = 24 * 3600 * 1000


@pytest.fixture
def stored(tenant: str, monkeypatch: pytest.MonkeyPatch) -> Notifications:
    """Return a device's notifications, limited to ten."""
    monkeypatch.setattr(notifications, "MAX_NOTIFICATIONS", 10)
    return Notifications(Table(config().devices_table), tenant, "lamp")


def store_notification(stored: Notifications, number: int, at_ms: int) -> None:
    stored.add(DeviceNotification("notifications/state_changed", {"number": number}), at_ms)


def listed_numbers(stored: Notifications, limit: int = 1000) -> list[int]:
    """Return the numbers listed by pages of this size."""
    numbers: list[int] = []
    cursor = None
    while True:
        page, cursor = stored.page(limit, cursor)
        assert len(page) <= limit
        for each in page:
            assert isinstance(each.params, dict)
            numbers.append(each.params["number"])
        if cursor is None:
            return numbers


def test_notifications_are_listed_newest_first_across_pages(stored: Notifications) -> None:
    now = int(time.time() * 1000)
    for number in range(14):
        store_notification(stored, number, now + number)
    newest = list(range(13, 3, -1))
    assert (
        listed_numbers(stored)
        == listed_numbers(stored, 3)
        == listed_numbers(stored, 1)
        == listed_numbers(stored, 10)
        == newest
    )
    stored.trim()
    assert listed_numbers(stored) == newest
    assert listed_numbers(Notifications(stored._table, "another", "lamp")) == []


def test_repeated_delivery_is_deduplicated(stored: Notifications) -> None:
    now = int(time.time() * 1000)
    for _ in range(3):
        store_notification(stored, 1, now)
    store_notification(stored, 2, now)
    store_notification(stored, 1, now + 1)
    assert sorted(listed_numbers(stored)) == [1, 1, 2]


def test_notifications_of_one_millisecond_keep_their_order(stored: Notifications) -> None:
    now = int(time.time() * 1000)
    for number in (3, 0, 4, 1, 2):
        stored.add(DeviceNotification("notifications/state_changed", {"number": number}), now, number)
    assert listed_numbers(stored) == listed_numbers(stored, 2) == [4, 3, 2, 1, 0]


def test_notifications_expire_after_a_week(stored: Notifications) -> None:
    now = int(time.time() * 1000)
    store_notification(stored, 1, now - 7 * DAY_MS - 1000)
    store_notification(stored, 2, now - 6 * DAY_MS)
    assert listed_numbers(stored) == [2]


def test_notification_values_round_trip(stored: Notifications) -> None:
    params = {"float": 0.1, "large": 2**70, "text": "đèn\0💡", "none": None, "list": [[], {}]}
    stored.add(DeviceNotification("custom", params), int(time.time() * 1000))
    (page, _) = stored.page(1, None)
    assert (page[0].method, page[0].params) == ("custom", params)


@pytest.mark.parametrize("cursor", ["x", "WyJhIiwgMV0", "WzFd"])
def test_invalid_cursors(stored: Notifications, cursor: str) -> None:
    with pytest.raises(InvalidParams):
        stored.page(1, cursor)


def test_notifications_of_a_clock_that_was_ahead_displace_no_others(
    stored: Notifications, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notifications, "MAX_NOTIFICATIONS", 5)
    now = int(time.time() * 1000)
    for number in range(5):
        store_notification(stored, number, now + 2 * DAY_MS + number)
    for number in range(10, 13):
        store_notification(stored, number, now + number)
    stored.trim()
    assert listed_numbers(stored) == [4, 3, 12, 11, 10]
