"""Fusion of semantic and lexical scores: at the extremes and between."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.search.bm25 import SATURATION, SparseTerms
from shared.search.calibration import Calibration
from shared.search.fusion import PassageMatch, WordWeights, rarity, similarity_of, similarity_of_tokens

SHARE = st.floats(0, 1)


def idf(passages: int, holding: int) -> float:
    return math.log(1 + (passages - holding + 0.5) / (holding + 0.5))


def test_idf_from_one_matching_passage() -> None:
    question = SparseTerms([1, 2, 3], [1.0, 0.25, 1.0])
    rarities = rarity(question, {1: (idf(100, 2) * 1.7, 1.7), 2: (idf(100, 50) * 0.4, 0.4)}, 100)
    assert rarities.weights == pytest.approx({1: idf(100, 2), 2: 0.25 * idf(100, 50), 3: idf(100, 0)})


def test_unknown_word_has_the_highest_idf() -> None:
    rarities = rarity(SparseTerms([1, 2], [1.0, 1.0]), {1: (idf(10, 1), 1.0)}, 10)
    assert rarities.weights[2] > rarities.weights[1]


def test_overlap_is_the_share_of_idf() -> None:
    rarities = rarity(SparseTerms([1, 2], [1.0, 1.0]), {1: (3.0, 1.0), 2: (1.0, 1.0)}, 10)
    assert rarities.overlap({1: 0.7}) == pytest.approx(0.75)
    assert rarities.overlap({1: 0.7, 2: 2.0, 9: 1.0}) == 1
    assert rarities.overlap({}) == 0


def test_query_without_words_has_no_lexical_score() -> None:
    rarities = rarity(SparseTerms([], []), {}, 10)
    assert (rarities.overlap({1: 1.0}), rarities.strength(1.0)) == (0, 0)


def test_strength_is_one_for_an_exact_passage() -> None:
    rarities = rarity(SparseTerms([1], [1.0]), {1: (3.0, 1.0)}, 10)
    assert rarities.strength(3.0 * (SATURATION + 1)) == 1


def score(whole: float, strength: float, words: float = 0.2, coverage: float = 0.5, **parts: Any) -> float:
    weights = WordWeights.of(words, 0.1, coverage, coverage)
    return PassageMatch(whole, strength, **parts).score(Calibration(), weights)


def test_cross_language_score_is_semantic_only() -> None:
    """Without any word of the question in the passages, scores equal the semantic scores."""
    assert score(0.6, 0.0, coverage=0.0) == pytest.approx(0.6)


def test_late_interaction_adds_to_the_whole_texts() -> None:
    """Neither similarity replaces the other."""
    assert score(0.5, 0.3, tokens=0.7) < score(0.6, 0.3, tokens=0.7) < score(0.6, 0.3, tokens=0.8)
    assert score(0.6, 0.3, tokens=0.6) == pytest.approx(score(0.6, 0.3))


def test_beginning_of_the_document_counts_for_later_passages() -> None:
    assert score(0.5, 0.3, beginning=0.4) < score(0.5, 0.3) < score(0.5, 0.3, beginning=0.7)


def test_lexical_score_decides_without_diacritics() -> None:
    """Similarities are close together where e5 reads a guess: a strong lexical match stands out."""
    by_words, by_meaning = (0.60, 0.45), (0.70, 0.15)
    restored = Calibration().restored_words
    assert score(*by_words, restored) > score(*by_meaning, restored) + 0.09
    assert score(*by_words) < score(*by_meaning)


@given(SHARE, SHARE, SHARE, SHARE, st.none() | SHARE, st.none() | SHARE)
def test_score_is_between_zero_and_one(  # noqa: PLR0917 - all parts of a match
    whole: float, strength: float, words: float, coverage: float, tokens: float | None, first: float | None
) -> None:
    assert 0 <= score(whole, strength, words, coverage, tokens=tokens, beginning=first) <= 1


@given(SHARE, SHARE, SHARE, st.fixed_dictionaries(dict.fromkeys(("tokens", "beginning", "context", "document"), SHARE)))
def test_fusion_is_monotonic(one: float, other: float, same: float, parts: dict[str, float]) -> None:
    low, high = sorted((one, other))
    assert score(low, same, **parts) <= score(high, same, **parts)
    assert score(same, low, **parts) <= score(same, high, **parts)
    for part in parts:
        assert score(same, same, **parts | {part: low}) <= score(same, same, **parts | {part: high})


def test_words_of_the_whole_document_count() -> None:
    """Until they are known, those of the passage stand for them."""
    assert score(0.5, 0.3, document=0.1) < score(0.5, 0.3) == score(0.5, 0.3, document=0.3)
    assert score(0.5, 0.3, document=0.3) < score(0.5, 0.3, document=0.9)


def test_document_context_breaks_ties() -> None:
    assert score(0.5, 0.3, context=0.9) > score(0.5, 0.3, context=0.1)


def test_similarity_range() -> None:
    calibration = Calibration()
    similarities = [similarity_of(cosine, calibration) for cosine in (0.2, 0.7, 0.85, 1.0)]
    assert similarities == pytest.approx([0, 0, 0.5, 1])
    assert similarity_of_tokens(0.6, calibration) == pytest.approx(0)
    assert similarity_of_tokens(0.9, calibration) == 1


def test_similarity_is_the_finest_that_was_measured() -> None:
    assert PassageMatch(0.6, 0.1).similarity == 0.6
    assert PassageMatch(0.6, 0.1, tokens=0.4).similarity == 0.4
    assert PassageMatch(0.6, 0.1, tokens=0.4, relevance=0.9).similarity == 0.9
    assert PassageMatch(0.6, 0.1, tokens=0.4, relevance=0.0).similarity == 0


def test_similarity_of_tokens_is_on_the_scale_of_whole_texts() -> None:
    calibration = Calibration(unrelated=0.5, reach=0.5, tokens_lower=0.2)
    assert similarity_of(0.75, calibration) == pytest.approx(0.5)
    assert similarity_of_tokens(0.55, calibration) == pytest.approx(0.5)
    assert similarity_of_tokens(0.3, calibration) == 0


def test_bm25_is_the_sum_over_the_words_of_a_passage() -> None:
    rarities = rarity(SparseTerms([1, 2], [1.0, 1.0]), {1: (3.0, 1.0), 2: (1.0, 1.0)}, 10)
    assert rarities.bm25({1: 0.5, 2: 2.0, 9: 7.0}) == pytest.approx(3.5)
    assert rarities.bm25({}) == 0


def test_callers_document_has_a_third_of_the_weight() -> None:
    parts = {part.name: part.weight for part in PassageMatch(0.5, 0.0, context=0.5).parts(Calibration(), WordWeights())}
    assert parts["context"] == pytest.approx(1 / 3)
    assert parts["meaning"] == pytest.approx(2 / 3)
