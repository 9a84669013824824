"""The search terms of texts: in every script, with and without diacritics."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.search.bm25 import SATURATION, TWIN, number, passage_terms, question_terms
from shared.search.tokenizer import fold_diacritics, has_content_word, stem, tokenize

VIETNAMESE = st.text(
    "aàáảãạăằắẳẵặâầấẩẫậbcdđeèéẻẽẹêềếểễệghiìíỉĩịklmnoòóỏõọôồốổỗộơờớởỡợpqrstuùúủũụưừứửữựvxyỳýỷỹỵ", min_size=1
)


def terms(text: str) -> list[str]:
    """Return the terms of `text` without their variants."""
    return [word.term for word in tokenize(text)]


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
def test_tokenize_every_script(text: str, expected: list[str]) -> None:
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
def test_english_stemming(forms: tuple[str, ...]) -> None:
    assert len({stem(form) for form in forms}) == 1


@pytest.mark.parametrize("word", ["bring", "this", "class", "status", "red", "đội", "für", "nghiêng"])
def test_false_suffixes_are_kept(word: str) -> None:
    assert stem(word) == word


@pytest.mark.parametrize("text", ["pod", "C", "www", "7", "咖啡", "phép", "% pod"])
def test_text_with_a_word(text: str) -> None:
    assert has_content_word(text)


@pytest.mark.parametrize("text", ["x" * 2048, "%", "﷽", "🙂", "_", "0000", ""])
def test_text_without_a_word(text: str) -> None:
    assert not has_content_word(text)


@pytest.mark.parametrize("text", ["the", "And of THE", "và", "va\u0300", "的", "这个", "的 the và!"])
def test_stop_words_are_no_content(text: str) -> None:
    assert not has_content_word(text)


@pytest.mark.parametrize("text", ["the pod", "The Who", "IT", "và mèo", "va", "的确", "目的地"])
def test_stop_words_with_others_are_content(text: str) -> None:
    assert has_content_word(text)


def test_vietnamese_tone_placement_is_normalized() -> None:
    assert terms("hòa khỏe thúy Òa") == terms("hoà khoẻ thuý Oà")
    assert terms("quý hoàn") == ["quý", "hoàn"]


@given(VIETNAMESE)
def test_accented_word_is_also_indexed_without_diacritics(word: str) -> None:
    assert fold_diacritics(word).isascii()
    numbers = set(passage_terms(word).numbers)
    assert set(question_terms(fold_diacritics(word)).numbers) <= numbers


@given(VIETNAMESE)
def test_unicode_normalization(word: str) -> None:
    assert list(tokenize(unicodedata.normalize("NFD", word))) == list(tokenize(unicodedata.normalize("NFC", word)))


@given(st.text())
def test_query_terms_cover_passage_terms(text: str) -> None:
    assert set(question_terms(text).numbers) == set(passage_terms(text).numbers)


@given(st.text())
def test_term_ids_are_unique_32_bit_integers(text: str) -> None:
    terms = passage_terms(text)
    assert len(set(terms.numbers)) == len(terms.numbers) == len(terms.weights)
    assert all(0 <= each < 2**32 for each in terms.numbers)
    assert all(0 < weight < SATURATION + 1 for weight in terms.weights)


def test_term_ids_are_deterministic() -> None:
    assert number("đội") == 3841469602
    assert number("panther") == 2427861031


def test_unaccented_variants_weigh_less_in_queries() -> None:
    weights = dict(zip(question_terms("đội bóng").numbers, question_terms("đội bóng").weights, strict=True))
    assert weights == {number("đội"): 1, number("doi"): TWIN, number("bóng"): 1, number("bong"): TWIN}


def test_word_spelled_both_ways_has_full_weight() -> None:
    question = question_terms("đội doi")
    assert dict(zip(question.numbers, question.weights, strict=True))[number("doi")] == 1
