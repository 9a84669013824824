"""Fractional index keys: always between their neighbours, never long at either end."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from shared.documents import fractional_index


@given(st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=120))
def test_key_between_any_two_keys(places: list[float]) -> None:
    keys: list[str] = []
    for place in places:
        index = int(place * (len(keys) + 1))
        left = keys[index - 1] if index else None
        right = keys[index] if index < len(keys) else None
        key = fractional_index.between(left, right)
        assert key is not None
        assert not key.endswith("0"), "nothing would fit before it"
        keys.insert(index, key)
    assert keys == sorted(set(keys))


@given(st.lists(st.booleans(), min_size=1, max_size=200))
def test_keys_at_the_ends_stay_short(sides: list[bool]) -> None:
    first = last = fractional_index.between(None, None)
    for at_the_end in sides:
        if at_the_end:
            last = fractional_index.between(last, None)
        else:
            first = fractional_index.between(None, first)
        assert first
        assert last
        assert first <= last
        assert len(first) <= 6 >= len(last)


@given(st.integers(1, 300), st.sampled_from([(None, None), (None, "V"), ("V", None), ("V", "V1"), ("1", "2")]))
def test_many_keys_are_ordered(count: int, bounds: tuple[str | None, str | None]) -> None:
    keys = fractional_index.spread(*bounds, count)
    assert len(keys) == count
    low, high = bounds
    assert keys == sorted(set(keys))
    assert (low or "") < keys[0]
    assert high is None or keys[-1] < high
    assert max(map(len, keys)) <= 8


def test_outermost_keys_leave_room() -> None:
    assert "" < (fractional_index.between(None, "00001") or "") < "00001"
    assert (fractional_index.between("zzzzzz", None) or "") > "zzzzzz"


def test_nothing_is_between_equal_keys() -> None:
    assert fractional_index.between("V", "V") is None
