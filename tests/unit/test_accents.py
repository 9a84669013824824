"""Accents are given back where passages show them, and nowhere else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.knowledge.accents import restored

TEXTS = ["Đội thủ của Panthers chỉ thua 308 điểm.", "Đội bóng có bao nhiêu điểm?", "Hình tròn bao quanh."]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("doi thu panthers thua bao nhieu diem?", "đội thủ panthers thua bao nhiêu điểm?"),
        ("Doi bong co diem", "đội bóng có điểm"),
        ("đội thu", "đội thu"),
        ("How many points?", "How many points?"),
        ("黑豹队 diem", "黑豹队 điểm"),
        ("", ""),
    ],
)
def test_words_get_the_accents_that_they_mostly_have(question: str, expected: str) -> None:
    assert restored(question, TEXTS) == expected


def test_a_word_that_is_mostly_written_without_stays() -> None:
    assert restored("resume the pod", ["Resume the pod.", "They resume.", "a résumé"]) == "resume the pod"


@given(st.text())
def test_without_passages_nothing_changes(question: str) -> None:
    assert restored(question, []) == question
