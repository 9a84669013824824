"""Pages that fit in a response of a function: 5 MiB with their escapes."""

from __future__ import annotations

import pytest

from shared.rpc.response_size import SizeBudget, answer_bytes, take_page

MEBIBYTES_5 = 5 * 1024 * 1024


@pytest.mark.parametrize(
    ("value", "nested", "size"),
    [("", 0, 6), ("x", 0, 7), ("ờ", 0, 9), ('"', 0, 10), ("", 1, 14), (["a", 1], 0, 11)],
)
def test_value_counts_with_its_escapes(value: object, nested: int, size: int) -> None:
    assert answer_bytes(value, nested=nested) == size
    assert nested or answer_bytes(value) == size


def test_budget_is_5_mib_without_what_is_reserved() -> None:
    reserved = 6  # of an empty text
    for reserve, size in (("", MEBIBYTES_5 - reserved), ("x" * 1000, MEBIBYTES_5 - reserved - 1000)):
        assert SizeBudget(reserve).try_add("x" * (size - reserved))
        assert not SizeBudget(reserve).try_add("x" * (size - reserved + 1))


def page(items: list[str], limit: int | None) -> tuple[int, str | None]:
    taken, following = take_page(items, limit, SizeBudget())
    return len(taken), following


def test_page_ends_at_its_limit_or_its_size() -> None:
    mebibyte = "x" * 1024 * 1024
    assert page(["a", "b", "c"], None) == (3, None)
    assert page(["a", "b", "c"], 3) == (3, None)
    assert page(["a", "b", "c"], 2) == (2, "c")
    assert page([mebibyte] * 4 + ["last"], None) == (5, None)
    assert page([mebibyte] * 5, 9) == (4, mebibyte)
    assert page([mebibyte * 6, "next"], None) == (1, "next"), "a page has one item at least"
    assert page([], None) == (0, None)
