"""Strict JSON: the depth is that of brackets outside of strings, and lone surrogates are found among pairs."""

from __future__ import annotations

import gc
import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.rpc.errors import InvalidParams, ParseError
from shared.rpc.strict_json import compact, fits, parse, require_text

texts = st.text('[]{}"\\, a\u00e9😀', max_size=8)
values = st.recursive(
    st.one_of(st.integers(), texts),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
)


def nested(value: Any, levels: int) -> Any:
    for level in range(levels):
        value = {'"]}\\': value} if level % 2 else ["[{", value]
    return value


def depth(value: Any) -> int:
    if not isinstance(value, list | dict):
        return 0
    return 1 + max(map(depth, value.values() if isinstance(value, dict) else value), default=0)


@given(values, st.integers(55, 70), st.booleans())
def test_depth_is_that_of_brackets_outside_of_strings(value: Any, levels: int, escapes: bool) -> None:
    value = nested(value, levels)
    raw = json.dumps(value, ensure_ascii=escapes).encode()
    if depth(value) <= 64:
        assert parse(raw) == value
    else:
        with pytest.raises(ParseError) as refused:
            parse(raw)
        assert refused.value.details == {"reason": "nested deeper than 64 levels"}


@pytest.mark.parametrize(
    "deepest", ["[" * 64 + "]" * 64, '{"a":' * 64 + "1" + "}" * 64, "[" + '{"a":[' * 31 + "{}" + "]}" * 31 + "]"]
)
def test_sixty_four_levels_are_accepted_and_no_more(deepest: str) -> None:
    parse(deepest.encode())
    with pytest.raises(ParseError) as refused:
        parse(f"[{deepest}]".encode())
    assert refused.value.details == {"reason": "nested deeper than 64 levels"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"1" * 5000, "a number has too many digits"),
        (b"[1e400]", "a number is too large"),
        (b"[-1e400]", "a number is too large"),
        (b"NaN", "NaN is not JSON"),
        (b"[-Infinity]", "-Infinity is not JSON"),
        (b'"\xff"', "byte 1 is not UTF-8"),
        (b'"\xed\xa0\x80"', "byte 1 is not UTF-8"),
        (b"[1,\n2 3]", "line 2, column 3: Expecting ',' delimiter"),
        (b"", "line 1, column 1: Expecting value"),
        (b"[" * 100_000, "nested deeper than 64 levels"),
    ],
)
def test_reason_tells_the_caller_what_is_wrong(text: bytes, reason: str) -> None:
    with pytest.raises(ParseError) as refused:
        parse(text)
    assert refused.value.details == {"reason": reason}


def test_lone_surrogate_in_a_name_is_refused_by_its_path() -> None:
    with pytest.raises(InvalidParams) as refused:
        require_text({"a": [{"\ud83d": 1}]})
    assert refused.value.details[0]["field"] == "a.0.\\ud83d"


@pytest.mark.parametrize("text", ["[{}]", "[{}", "[{}]" + " " * 100_000, "[{}" + " " * 100_000])
def test_garbage_collection_goes_on_after_parsing(text: str) -> None:
    assert gc.isenabled()
    with suppress(ParseError):
        parse(text.encode())
    assert gc.isenabled()


def test_parsing_many_containers_starts_few_collections() -> None:
    """Every 700 new containers would start one, and some of those look at all values again."""
    phases: list[str] = []
    count = lambda phase, _info: phases.append(phase)  # noqa: E731 - removed by identity
    gc.callbacks.append(count)
    parse(b"[" + b"[]," * 100_000 + b"0]")
    gc.callbacks.remove(count)
    assert phases.count("start") < 5


@given(values)
def test_size_is_that_of_compact_json(value: Any) -> None:
    size = len(compact(value).encode())
    assert fits(value, size)
    assert not fits(value, size - 1)


@pytest.mark.parametrize(
    ("escapes", "is_text"),
    [
        (r"\ud83d\ude00", True),
        (r"\uD83D\uDE00 \u00e9", True),
        (r"\\ud83d", True),
        (r"\ud83d", False),
        (r"\ude00", False),
        (r"\ud83dx\ude00", False),
        (r"\ud83d\ud83d\ude00", False),
        (r"\ud83d\ude00\ude00", False),
    ],
)
def test_lone_surrogates_are_refused_by_field(escapes: str, is_text: bool) -> None:
    raw = f'{{"a": ["b", "{escapes}"]}}'.encode()
    if is_text:
        require_text(parse(raw), raw)
    else:
        with pytest.raises(InvalidParams) as refused:
            require_text(parse(raw), raw)
        assert refused.value.details[0]["field"] == "a.1"
