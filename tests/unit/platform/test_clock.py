"""Stored times are believed only as far as they could have been set now."""

from __future__ import annotations

import pytest

from shared.platform.clock import SKEW_SECONDS, lasts

NOW = 1_000_000.0


@pytest.mark.parametrize(
    ("until", "believed"),
    [
        (NOW - 1, False),
        (NOW, False),
        (NOW + 1, True),
        (NOW + 30, True),
        (NOW + 30 + SKEW_SECONDS, True),
        (NOW + 31 + SKEW_SECONDS, False),
        (NOW + 2 * 86_400, False),
    ],
)
def test_limit_of_thirty_seconds(until: float, *, believed: bool) -> None:
    assert lasts(until, NOW, 30) is believed
