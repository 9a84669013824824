"""Cursors: only the positions that a list has returned are read."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from pydantic import ValidationError

from shared.rpc import cursor as cursors
from shared.rpc.cursor import PageParams
from shared.rpc.errors import InvalidParams


def encoded(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


@pytest.mark.parametrize("position", [("a",), ("é#\n😀", 0), (0, "", 2**53), ()])
def test_position_is_read_as_it_was_encoded(position: tuple[Any, ...]) -> None:
    cursor = cursors.encode(*position)
    assert cursors.decode(cursor, *map(type, position)) == list(position)
    assert "=" not in cursor


@pytest.mark.parametrize(
    ("cursor", "types"),
    [
        ("", (str,)),
        ("%%%%", (str,)),
        ("é", (str,)),
        (encoded('["a"]') + "\n", (str,)),
        (encoded("[") + "A", (str,)),
        (encoded('"a"'), (str,)),
        (encoded('{"a": 1}'), (str,)),
        (encoded('["a", "b"]'), (str,)),
        (encoded("[]"), (str,)),
        (encoded("[1]"), (str,)),
        (encoded('["1"]'), (int,)),
        (encoded("[true]"), (int,)),
        (encoded("[1.0]"), (int,)),
        (encoded("[null]"), (str,)),
        (encoded("[-1]"), (int,)),
        (encoded(f"[{2**53 + 1}]"), (int,)),
        (encoded('["\\u0000a"]'), (str,)),
        (encoded('["\\ud800"]'), (str,)),
        (encoded("[" * 3000), (str,)),
    ],
)
def test_other_texts_are_refused(cursor: str, types: tuple[type, ...]) -> None:
    with pytest.raises(InvalidParams) as refused:
        cursors.decode(cursor, *types)
    assert refused.value.details[0]["field"] == "cursor"


def test_sort_key_has_1_to_1024_bytes() -> None:
    for key in ("x", "x" * 1024, "é" * 512):
        assert cursors.decode_sort_key(cursors.encode(key)) == key
    for key in ("", "x" * 1025, "é" * 513):
        with pytest.raises(InvalidParams):
            cursors.decode_sort_key(cursors.encode(key))


@pytest.mark.parametrize(
    "wrong", [{"limit": 0}, {"limit": 1001}, {"limit": 1.5}, {"cursor": ""}, {"cursor": "x" * 4097}]
)
def test_page_of_another_size_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        PageParams.model_validate(wrong)


def test_page_has_1_to_1000_entries_and_100_by_default() -> None:
    assert PageParams().limit == 100
    for limit in (1, 1000, 7.0):
        assert PageParams.model_validate({"limit": limit}).limit == limit
    for cursor in ("x", "x" * 4096):
        assert PageParams.model_validate({"cursor": cursor}).cursor == cursor
