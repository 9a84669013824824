"""The texts that a passage's vectors are made of."""

from __future__ import annotations

import pytest

from shared.search.bm25 import number, passage_terms
from shared.search.passages import DocumentRef, Passage


@pytest.mark.parametrize("name", ["p0", "2026-11.md", "a1_b2.txt", "..."])
def test_file_name_without_words_is_not_embedded(name: str) -> None:
    passage = Passage(DocumentRef("t", "c", name), 0, "Ferns.", 1, name, f"notes/{name}", ("Moss",))
    assert passage.embedded_text == "Moss\nFerns."
    assert passage.searchable_text == f"notes/{name}\n{name}\nMoss\nFerns."


@pytest.mark.parametrize("name", ["ferns.md", "sổ.md", "蕨.txt"])
def test_meaningful_file_name_is_embedded(name: str) -> None:
    passage = Passage(DocumentRef("t", "c", name), 0, "Ferns.", 1, name, f"notes/{name}")
    assert passage.embedded_text == f"{name}\nFerns."


def test_path_is_searched_by_its_words() -> None:
    """The folders and the file name of a document are found, though only the text's meaning is embedded."""
    passage = Passage(DocumentRef("t", "c", "x"), 0, "Water daily.", 1, "Ferns", "garden/shade_plants.md")
    assert passage.embedded_text == "Ferns\nWater daily."
    assert {number("garden"), number("shad"), number("plant")} <= {*passage_terms(passage.searchable_text).numbers}


def test_explicit_title_is_always_embedded() -> None:
    assert Passage(DocumentRef("t", "c", "x.md"), 0, "Ferns.", 1, "Q3", "x.md").embedded_text == "Q3\nFerns."
