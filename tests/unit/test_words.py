"""The words that texts are found by: every script, with and without accents."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.knowledge.lexical import SATURATION, TWIN, number, passage_terms, question_terms
from shared.knowledge.words import fold, stem, words

VIETNAMESE = st.text(
    "aàáảãạăằắẳẵặâầấẩẫậbcdđeèéẻẽẹêềếểễệghiìíỉĩịklmnoòóỏõọôồốổỗộơờớởỡợpqrstuùúủũụưừứửữựvxyỳýỷỹỵ", min_size=1
)


def terms(text: str) -> list[str]:
    """The terms of `text`, without their twins."""
    return [word.term for word in words(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Panthers' defense", ["the", "panther", "defens"]),
        ("query_knowledge_base", ["query", "knowledg", "bas"]),
        ("PodDisruptionBudget", ["poddisruptionbudget", "pod", "disruption", "budget"]),
        ("HTTPServer v1beta1", ["httpserver", "http", "server", "v1beta1"]),
        ("黑豹队", ["黑", "黑豹", "豹", "豹队", "队"]),
        ("用Qdrant检索", ["用", "qdrant", "检", "检索", "索"]),
        ("ＡＢＣ１２３", ["abc123", "abc", "123"]),
        ("hòa bình", ["hoà", "bình"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("!? — …", []),
        ("a\0b", ["a", "b"]),
    ],
)
def test_words_of_every_script(text: str, expected: list[str]) -> None:
    assert terms(text) == expected


@pytest.mark.parametrize(
    "forms",
    [
        ("run", "runs", "running"),
        ("make", "makes", "making"),
        ("box", "boxes"),
        ("study", "studies"),
        ("stop", "stopped", "stopping"),
        ("cluster", "clusters", "clustering", "clustered"),
    ],
)
def test_forms_of_an_english_word_are_one(forms: tuple[str, ...]) -> None:
    assert len({stem(form) for form in forms}) == 1


@pytest.mark.parametrize("word", ["bring", "this", "class", "status", "red", "đội", "für", "nghiêng"])
def test_what_only_looks_like_an_ending_stays(word: str) -> None:
    assert stem(word) == word


def test_both_places_of_a_vietnamese_tone_are_one_word() -> None:
    assert terms("hòa khỏe thúy Òa") == terms("hoà khoẻ thuý Oà")
    assert terms("quý hoàn") == ["quý", "hoàn"]


@given(VIETNAMESE)
def test_an_accented_word_has_a_twin_that_finds_it_without_accents(word: str) -> None:
    assert fold(word).isascii()
    held = set(passage_terms(word).numbers)
    assert set(question_terms(fold(word)).numbers) <= held


@given(VIETNAMESE)
def test_composed_and_decomposed_letters_are_the_same_word(word: str) -> None:
    assert list(words(unicodedata.normalize("NFD", word))) == list(words(unicodedata.normalize("NFC", word)))


@given(st.text())
def test_whatever_a_passage_holds_its_own_text_asks_for(text: str) -> None:
    assert set(question_terms(text).numbers) == set(passage_terms(text).numbers)


@given(st.text())
def test_numbers_are_of_32_bits_and_each_comes_once(text: str) -> None:
    found = passage_terms(text)
    assert len(set(found.numbers)) == len(found.numbers) == len(found.weights)
    assert all(0 <= each < 2**32 for each in found.numbers)
    assert all(0 < weight < SATURATION + 1 for weight in found.weights)


def test_a_term_has_the_same_number_in_every_process() -> None:
    assert number("đội") == 3841469602
    assert number("panther") == 2427861031


def test_a_question_with_accents_counts_its_twins_less() -> None:
    weights = dict(zip(question_terms("đội bóng").numbers, question_terms("đội bóng").weights, strict=True))
    assert weights == {number("đội"): 1, number("doi"): TWIN, number("bóng"): 1, number("bong"): TWIN}


def test_a_word_that_a_question_spells_both_ways_counts_in_full() -> None:
    asked = question_terms("đội doi")
    assert dict(zip(asked.numbers, asked.weights, strict=True))[number("doi")] == 1
