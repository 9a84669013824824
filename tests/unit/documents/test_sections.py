"""Sections of Markdown."""

from __future__ import annotations

import pytest

from shared.documents.sections import leaves_block_open, matching_sections, sections, similar_sections, with_section

GUIDE = """\
---
title: Ferns
---
# Ferns

About ferns.

## Water

Each *day*.

### Summer

Twice.

```sh
## Water
```

Soil
----

- humus
  # In a list

## Water

Rain.
"""


def contents(text: str) -> dict[tuple[str, ...], str]:
    return {each.path: text[each.content.start : each.content.end] for each in sections(text)}


def replaced(text: str, body: str, *path: str) -> str:
    (section,) = matching_sections(sections(text), path)
    return with_section(text, section, body)[0]


def test_sections_end_before_a_heading_of_their_level_or_above() -> None:
    names = [each.path for each in sections(GUIDE)]
    assert names == [
        ("Ferns",),
        ("Ferns", "Water"),
        ("Ferns", "Water", "Summer"),
        ("Ferns", "Soil"),
        ("Ferns", "Water"),
    ]
    by_path = contents(GUIDE)
    assert by_path["Ferns",] == GUIDE.partition("# Ferns\n")[2]
    assert by_path["Ferns", "Water", "Summer"] == "\nTwice.\n\n```sh\n## Water\n```\n\n"
    assert by_path["Ferns", "Soil"] == "\n- humus\n  # In a list\n\n"
    assert [each.before_underlined for each in sections(GUIDE)] == [False, True, True, False, False]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("```\n# no\n```\n# yes", ["yes"]),
        ("~~~~\n# no\n~~~\n# no\n~~~~\n# yes", ["yes"]),
        ("- ```\n  # no\n  ```\n\n# yes", ["yes"]),
        ("1.  ```\n    # no\n    ```\n# yes", ["yes"]),
        ("```\n# no, to the end", []),
        ("    # no\n# yes", ["yes"]),
        ("> # no\n\n# yes", ["yes"]),
        ("<!--\n# no\n-->\n# yes", ["yes"]),
        ("<pre>\n# no\n</pre>\n\n# yes", ["yes"]),
        ("Yes\n===\n\nAlso\nyes\n---\n\n* * *\n---\n", ["Yes", "Also yes"]),
        ("# yes #\n#no\n####### no\n#\tyes too", ["yes", "yes too"]),
        ("# **Bold** `code` [link](x) &amp;", ["Bold code link &"]),
        ("\ufeff# yes", ["yes"]),
        ("# a\r# b\r\n# c\n", ["a", "b", "c"]),
        ("# Tie\u0302\u0301ng", ["Ti\u1ebfng"]),
    ],
)
def test_headings_of_markdown(text: str, names: list[str]) -> None:
    assert [each.path[-1] for each in sections(text)] == names


def test_deep_nesting() -> None:
    text = "".join(f"{'#' * level} L{level}\n\ntext {level}\n\n" for level in range(1, 7))
    path = tuple(f"L{level}" for level in range(1, 7))
    assert sections(text)[-1].path == path
    assert replaced(text, "new", *path) == text.replace("text 6\n\n", "new\n\n")
    assert replaced(text, "new", "L6") == replaced(text, "new", "L5", "L6")


def test_paths_choose_between_equal_headings() -> None:
    text = "# A\n## N\n# N\n# B\n## N\n## N\n"
    paths = [("N",), ("A", "N"), ("B", "N"), ("C", "N"), ("B",), ("**B**",), (" B ",)]
    assert [len(matching_sections(sections(text), path)) for path in paths] == [1, 1, 2, 0, 1, 1, 1]
    (whole,) = matching_sections(sections(text), ("N",))
    assert whole.path == ("N",), "the section of exactly this path"
    inner = [each.path for each in matching_sections(sections("# A\n## N\n# B\n## N\n"), ("N",))]
    assert inner == [("A", "N"), ("B", "N")]


def test_similar_headings_come_first() -> None:
    near = similar_sections(sections("# A\n# Watering\n# WATER\n# Soil\n"), ("## Water",))
    assert [each.path[-1] for each in near][:2] == ["WATER", "Watering"]


@pytest.mark.parametrize(
    ("text", "body", "result"),
    [
        ("# A\n\nold\n\n# B\n", "new", "# A\n\nnew\n\n# B\n"),
        ("# A\n\nold\n\n# B\n", "new\n", "# A\n\nnew\n\n# B\n"),
        ("# A\nold\n# B\n", "new", "# A\nnew\n# B\n"),
        ("# A\n# B\n", "new", "# A\n\nnew\n\n# B\n"),
        ("# A\n\n\n# B\n", "new", "# A\n\nnew\n\n# B\n"),
        ("# A\n\nold\n\n# B\n", "", "# A\n\n# B\n"),
        ("# A\nold\n# B\n", "", "# A\n# B\n"),
        ("# A\n\nold\n\n## Inner\n\nold\n", "new", "# A\n\nnew\n"),
        ("# A", "new", "# A\n\nnew"),
        ("# A\n", "new", "# A\n\nnew\n"),
        ("# A\n\nold", "new", "# A\n\nnew"),
        ("# A\n\nold\n\n", "new", "# A\n\nnew\n\n"),
        ("A\n=\nold\n\nB\n=\n", "new", "A\n=\nnew\n\nB\n=\n"),
        ("# A\n```\n```\nB\n=\n", "new", "# A\nnew\n\nB\n=\n"),  # a blank line, or "new" would be a part of the heading
        ("# A\r\n\r\nold\r\n\r\n# B\r\n", "new", "# A\r\n\r\nnew\r\n\r\n# B\r\n"),
        ("# A\r\n# B\r\n", "new", "# A\r\n\r\nnew\r\n\r\n# B\r\n"),
    ],
)
def test_new_text_of_a_section(text: str, body: str, result: str) -> None:
    (section, *_) = sections(text)
    changed, span = with_section(text, section, body)
    assert changed == result
    assert changed[span.start : span.end].rstrip() == body.rstrip()
    names = [each.path for each in sections(text) if not section.content.start <= each.heading < section.content.end]
    assert [each.path for each in sections(changed)] == names


@pytest.mark.parametrize(
    ("body", "is_open"),
    [
        ("text", False),
        ("```\ncode\n```", False),
        ("```\ncode", True),
        ("<!-- note", True),
        ("- a\n  ```\n  x", False),
        ("", False),
    ],
)
def test_open_blocks(body: str, *, is_open: bool) -> None:
    assert leaves_block_open(body) == is_open
