"""Fusion of semantic and lexical scores: at the extremes and between."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.knowledge.bm25 import SATURATION, SparseTerms
from shared.knowledge.embedding.models import E5_SMALL
from shared.knowledge.fusion import fuse, rarity, similarity_of, similarity_of_tokens

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


def test_cross_language_score_is_semantic_only() -> None:
    """Without any word of the question in the passages, scores equal the semantic scores."""
    assert fuse(0.6, 0.0, 0.0, None) == pytest.approx(0.6)


def test_lexical_score_decides_without_diacritics() -> None:
    """Similarities are close together where e5 does not understand: a strong lexical match stands out."""
    by_words, by_meaning = fuse(0.40, 0.45, 0.9, None), fuse(0.45, 0.05, 0.9, None)
    assert by_words > by_meaning + 0.15


@given(SHARE, SHARE, SHARE, st.none() | SHARE)
def test_score_is_between_zero_and_one(
    similarity: float, strength: float, coverage: float, context: float | None
) -> None:
    assert 0 <= fuse(similarity, strength, coverage, context) <= 1


@given(SHARE, SHARE, SHARE, SHARE, SHARE)
def test_fusion_is_monotonic(one: float, other: float, same: float, coverage: float, context: float) -> None:
    low, high = sorted((one, other))
    assert fuse(low, same, coverage, context) <= fuse(high, same, coverage, context)
    assert fuse(same, low, coverage, context) <= fuse(same, high, coverage, context)
    assert fuse(same, same, coverage, low) <= fuse(same, same, coverage, high)


def test_document_context_breaks_ties() -> None:
    assert fuse(0.5, 0.3, 0.4, 0.9) > fuse(0.5, 0.3, 0.4, 0.1)


def test_similarity_range() -> None:
    assert [similarity_of(cosine, E5_SMALL) for cosine in (0.2, 0.7, 0.85, 1.0)] == pytest.approx([0, 0, 0.5, 1])
    assert similarity_of_tokens(0.6, E5_SMALL) == pytest.approx(0)
    assert similarity_of_tokens(0.9, E5_SMALL) == 1
