"""Occurrences of a text in another."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.documents.occurrences import MOST_OCCURRENCES, excerpt, find_occurrences, similar_lines

CAFE, DECOMPOSED = "caf\u00e9", "cafe\u0301"


def found(text: str, wanted: str) -> list[str]:
    return [text[span.start : span.end] for span in find_occurrences(text, wanted).spans]


@pytest.mark.parametrize(
    ("text", "wanted", "occurrences"),
    [
        ("one two one", "one", ["one", "one"]),
        ("one", "two", []),
        ("a\r\nb", "a\nb", ["a\r\nb"]),
        ("a\nb", "a\r\nb", ["a\nb"]),
        ("a\rb", "a\nb", ["a\rb"]),
        ("a\nb a\r\nb", "a\nb", ["a\nb"]),  # the exact ones go before
        ("a\r\nb", "\nb", ["\r\nb"]),
        ("a\r\nb", "a\r", ["a\r\n"]),  # a line break in other characters
        (f"{DECOMPOSED} x", CAFE, [DECOMPOSED]),
        (f"{CAFE} x", DECOMPOSED, [CAFE]),
        (DECOMPOSED, "cafe", []),
        (f"{DECOMPOSED} cafe", "cafe", ["cafe"]),
        (DECOMPOSED, "\u0301", []),
        ("\u1112\u1161\u11ab\u1100\u1173\u11af", "\ud55c\uae00", ["\u1112\u1161\u11ab\u1100\u1173\u11af"]),
        ("\u1112\u1161\u11ab", "\u1112\u1161", []),
        (
            "ti\u0301ng Vi\u0323\u0302t\r\nx",
            "Vi\u1ec7t\nx".replace("i\u1ec7", "i\u0323\u0302"),
            ["Vi\u0323\u0302t\r\nx"],
        ),
    ],
)
def test_occurrences_are_whole_letters_and_line_breaks(text: str, wanted: str, occurrences: list[str]) -> None:
    assert found(text, wanted) == occurrences


@pytest.mark.parametrize(("text", "wanted"), [("aaa", "aa"), ("ab ab ab", "ab ab"), (DECOMPOSED * 3, DECOMPOSED * 2)])
def test_overlapping_occurrences_are_told(text: str, wanted: str) -> None:
    assert find_occurrences(text, wanted).overlap
    assert not find_occurrences(text, text).overlap


def test_large_texts() -> None:
    """A text of 1 MiB is found whole. Neither overlaps nor many short occurrences take more than linear time."""
    part = "".join(f"{number:x} " for number in range(200_000))[: 2**20]
    assert found(f"start {part} middle {part} end", part) == [part, part]
    assert find_occurrences("a" * 2**21, "a" * 2**20).overlap
    assert len(find_occurrences("a" * 2**21, "a").spans) == MOST_OCCURRENCES + 1
    assert find_occurrences("a\u0301" * 2**19, "a\u0301" * 2**18 + "a").overlap
    assert find_occurrences("e\u0301" * 2**14, "\u00e9" * 2**13).overlap


@given(
    st.text("ae\u0301\u0323\u00e9\r\n\uac00\u1100\u1161 ", max_size=30),
    st.text("ae\u0301\u00e9\r\n\u1100\u1161", min_size=1, max_size=4),
)
def test_occurrences_are_equivalent_to_what_was_wanted(text: str, wanted: str) -> None:
    def canonical(part: str) -> str:
        return unicodedata.normalize("NFC", part.replace("\r\n", "\n").replace("\r", "\n"))

    spans = find_occurrences(text, wanted).spans
    for start, end in spans:
        assert text[start:end] == wanted or canonical(text[start:end]) == canonical(wanted)
        # Each side may be changed without a change of the other.
        assert canonical(text[:start]) + canonical(text[start:end]) + canonical(text[end:]) == canonical(text)
    if wanted.isascii() and text.isascii() and "\r" not in text + wanted:
        assert bool(spans) == (wanted in text)


@pytest.mark.parametrize(
    ("text", "wanted", "line"),
    [
        ("x\nThe  Fern\ny", "the fern", "The  Fern"),
        ("x\n“Quoted” – text\ny", '"quoted" - text', "“Quoted” – text"),
        (f"x\n{DECOMPOSED}\ny", "cafe", DECOMPOSED),
        ("x\r\nsome line\r\n", "another\nsome  line\n", "some line"),
    ],
)
def test_similar_lines(text: str, wanted: str, line: str) -> None:
    (start,) = similar_lines(text, wanted)
    assert excerpt(text, start) == line


def test_nothing_is_similar() -> None:
    assert similar_lines("x\ny", "z") == []
    assert similar_lines("x\ny", " \n") == []


def test_excerpt_of_a_long_line_shows_the_place() -> None:
    text = "a" * 1000 + "wanted" + "b" * 1000
    assert "wanted" in excerpt(text, 1000)
    assert len(excerpt(text, 1000)) == 100
