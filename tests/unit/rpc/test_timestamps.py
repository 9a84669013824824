"""Timestamps: UTC text round-trips unchanged, and text order is time order."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.rpc import timestamps


@pytest.mark.parametrize(
    ("given_text", "text"),
    [
        ("2025-09-16T03:00:00Z", "2025-09-16T03:00:00Z"),
        ("2025-09-16T03:00:00.250Z", "2025-09-16T03:00:00.250Z"),
        ("2025-09-16T03:00:00.000001Z", "2025-09-16T03:00:00.000001Z"),
        ("2025-09-16T10:00:00+07:00", "2025-09-16T03:00:00Z"),
        ("2025-09-16t03:00:00z", "2025-09-16T03:00:00Z"),
        ("1969-12-31T23:59:59.999999Z", "1969-12-31T23:59:59.999999Z"),
        ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59Z"),
        ("9999-12-31T23:59:59-07:00", "9999-12-31T23:59:59.999999Z"),
        ("0001-01-01T00:00:00+07:00", "0001-01-01T00:00:00Z"),
    ],
)
def test_timestamp_is_normalized_to_utc(given_text: str, text: str) -> None:
    assert timestamps.to_iso(timestamps.from_iso(given_text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "2025-09-16",
        "2025-09-16T03:00:00",
        "2025-09-16 03:00:00Z",
        "2025-02-30T03:00:00Z",
        "20250916T030000Z",
        "2025-W38-2T03:00:00Z",
        "now",
        "",
        "2025-09-16T03:00:00Z\n",
        1757991600,
        None,
    ],
)
def test_invalid_timestamp_is_rejected(text: object) -> None:
    with pytest.raises(ValueError, match="should be a time"):
        timestamps.from_iso(text)


ZONES = [UTC, timezone(timedelta(hours=-5))]
times = st.datetimes(timezones=st.sampled_from(ZONES)).filter(lambda time: 1000 <= time.year <= 9998)


@given(times, times)
def test_timestamps_sort_chronologically(one: datetime, other: datetime) -> None:
    first, second = timestamps.from_iso(one.isoformat()), timestamps.from_iso(other.isoformat())
    assert (first < second) == (one < other)
    assert datetime.fromisoformat(timestamps.to_iso(first)) == one
