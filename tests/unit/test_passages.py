"""What a passage's vectors are made of."""

from __future__ import annotations

import pytest

from shared.knowledge.passages import Document, Passage


@pytest.mark.parametrize("name", ["p0", "2026-11.md", "a1_b2.txt", "..."])
def test_a_file_s_name_without_a_word_blurs_no_meaning(name: str) -> None:
    passage = Passage(Document("t", "c", name), 0, "Ferns.", 1, name, f"notes/{name}", ("Moss",))
    assert passage.meant == "Moss\nFerns."
    assert passage.searchable == f"{name}\nMoss\nFerns."


@pytest.mark.parametrize("name", ["ferns.md", "sổ.md", "蕨.txt"])
def test_a_name_that_tells_something_is_meant_too(name: str) -> None:
    passage = Passage(Document("t", "c", name), 0, "Ferns.", 1, name, f"notes/{name}")
    assert passage.meant == passage.searchable == f"{name}\nFerns."


def test_a_title_that_was_given_is_meant_whatever_it_is() -> None:
    assert Passage(Document("t", "c", "x.md"), 0, "Ferns.", 1, "Q3", "x.md").meant == "Q3\nFerns."
