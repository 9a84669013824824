"""Edits of a text."""

from __future__ import annotations

from typing import Any

import pytest

from shared.documents.edits import Edit, Edited, Replacement, SectionEdit, edit_metadata, edit_text, summary
from shared.documents.models import MAX_BODY_BYTES
from shared.rpc.errors import Conflict, InvalidParams, TooLarge

TEXT = "# A\n\none two two\n\n## B\n\nold\n"


def replace(text: str, old: str, new: str, count: int = 1) -> Edited:
    return edit_text(text, "text/markdown", Edit(replace=Replacement(old, new, count)), "edits.0")


def section(text: str, body: str, *heading: str) -> Edited:
    return edit_text(text, "text/markdown", Edit(section=SectionEdit(heading, body)), "edits.0")


def refusal(call: Any, *args: Any) -> Conflict:
    with pytest.raises(Conflict) as raised:
        call(*args)
    assert raised.value.code == "NO_SINGLE_MATCH"
    return raised.value


def test_ends_of_the_text() -> None:
    assert edit_text("a\nb", "text/plain", Edit(append="c\nd\n"), "") == ("a\nbc\nd\n", "appended lines 2-3")
    assert edit_text("a\nb", "text/plain", Edit(prepend="c\n"), "") == ("c\na\nb", "prepended line 1")


@pytest.mark.parametrize(
    ("old", "new", "count", "result", "change"),
    [
        ("one", "three", 1, "three two two", "replaced line 3"),
        ("two", "x", 2, "one x x", "replaced 2 places, the first in line 3"),
        ("one ", "", 1, "two two", "replaced line 3"),
        ("two two", "two\ntwo", 1, "one two\ntwo", "replaced lines 3-4"),
        ("one", "$1 \\1", 1, "$1 \\1 two two", "replaced line 3"),
    ],
)
def test_replacement(old: str, new: str, count: int, result: str, change: str) -> None:
    assert replace(TEXT, old, new, count) == (TEXT.replace("one two two", result), change)


@pytest.mark.parametrize(
    ("text", "old", "count", "problem", "lines"),
    [
        (TEXT, "two", 1, "'old' occurs 2 times, not 1", [3, 3]),
        (TEXT, "two", 3, "'old' occurs 2 times, not 3", [3, 3]),
        (TEXT, "one", 2, "'old' occurs 1 time, not 2", [3]),
        (TEXT, "ONE  TWO", 1, "'old' does not occur in the text. Similar is line 3 “one two two”", [3]),
        (TEXT, "nothing like it", 1, "'old' does not occur in the text", []),
        ("aaa", "aa", 1, "'old' occurs at places that overlap", [1, 1]),
        ("aaa", "aa", 2, "'old' occurs at places that overlap", [1, 1]),
        ("x\n" * 20_000, "x", 1, "'old' occurs more than 10000 times, not 1", [*range(1, 11)]),
        ("cafe\u0301", "cafe", 1, "'old' does not occur in the text. Similar is line 1", [1]),
    ],
)
def test_replacement_without_a_single_match(text: str, old: str, count: int, problem: str, lines: list[int]) -> None:
    error = refusal(replace, text, old, "new", count)
    assert error.message.startswith(f"edits.0.replace: {problem}")
    assert [each["line"] for each in error.details["candidates"]] == lines
    assert error.details["field"] == "edits.0.replace"


def test_replacement_across_line_breaks_keeps_their_kind() -> None:
    assert replace("a\r\nb\r\nc", "a\nb", "x\ny\n").text == "x\r\ny\r\n\r\nc"
    assert replace("a\r\nb", "a\r\nb", "x\ny").text == "x\ny", "as the caller wrote it"
    assert replace("e\u0301 x", "\u00e9", "\u00ea").text == "\u00ea x"


def test_replacement_of_1_mib() -> None:
    part = "".join(f"{number:x} " for number in range(200_000))[: 2**20 - 10]
    assert replace(f"a {part} b", part, "short").text == "a short b"
    error = refusal(replace, part * 2, part, "short")
    assert len(error.message) < 500
    assert all(len(each["text"]) <= 100 for each in error.details["candidates"])


def test_section() -> None:
    assert section(TEXT, "new", "A", "B") == ("# A\n\none two two\n\n## B\n\nnew\n", "section A > B: line 7")
    assert section(TEXT, "new", "B") == section(TEXT, "new", "A", "B")


def test_section_without_a_single_match() -> None:
    twice = f"{TEXT}\n## B\n"
    error = refusal(section, twice, "new", "A", "B")
    assert error.message == "edits.0.section: 2 sections have this heading. See line 5 “A > B”; 9 “A > B”."
    assert error.details["candidates"] == [{"line": 5, "heading": ["A", "B"]}, {"line": 9, "heading": ["A", "B"]}]
    error = refusal(section, TEXT, "new", "b")
    assert error.message == "edits.0.section: no section has this heading. Similar is line 5 “A > B”; 1 “A”."
    assert "no headings" in refusal(section, "text", "new", "b").message
    plain = Edit(section=SectionEdit(("A",), "new"))
    assert "text/plain has no headings" in refusal(edit_text, TEXT, "text/plain", plain, "edits.0").message


def test_section_that_would_hide_the_next_heading() -> None:
    text = "# A\n\nold\n\n# B\n"
    with pytest.raises(InvalidParams) as raised:
        section(text, "```\nopen", "A")
    assert raised.value.details[0]["field"] == "edits.0.section.body"
    assert section(text, "```\nopen", "B").text == "# A\n\nold\n\n# B\n\n```\nopen\n"


def test_limit_is_that_of_a_document() -> None:
    """A larger text is refused before it is made."""
    edit = Edit(append="x")
    assert edit_text("x" * (MAX_BODY_BYTES - 1), "text/plain", edit, "").text == "x" * MAX_BODY_BYTES
    for text in ("x" * MAX_BODY_BYTES, "ờ" * (MAX_BODY_BYTES // 3)):
        with pytest.raises(TooLarge) as raised:
            edit_text(text, "text/plain", Edit(append="xxx"), "")
        assert raised.value.details == {"limit": MAX_BODY_BYTES}
    with pytest.raises(TooLarge):
        replace("x" * 10_000, "x", "y" * 2**20, 10_000)
    assert summary(["appended line 2"], "x" * 2**20) == "appended line 2"
    near = summary(["appended line 2"], "ờ" * 650_000)
    assert near == f"appended line 2; {MAX_BODY_BYTES - 1_950_000} bytes are left of 2097152"


def test_metadata() -> None:
    old = {"title": "A", "tags": ["x"], "gone": 1, "null": None}
    changes = {"title": "B", "gone": None, "missing": None, "new": {"a": None}}
    assert edit_metadata(old, changes) == (
        {"title": "B", "tags": ["x"], "null": None, "new": {"a": None}},
        "metadata: set title, new, removed gone, missing",
    )


def test_summary_stays_short() -> None:
    _, change = edit_metadata({}, {f"{number}-{'long' * 100}": 1 for number in range(100)})
    assert len(change) < 300
    assert change.endswith("…, and 97 more")
    assert summary(["a", "b", "c", "d", "e"], None) == "a; b; c; and 2 more"
