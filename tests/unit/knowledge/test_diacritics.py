"""Diacritics are restored where passages show them, and nowhere else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.search.diacritics import restore_diacritics

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
def test_words_get_their_most_frequent_diacritics(question: str, expected: str) -> None:
    assert restore_diacritics(question, TEXTS) == expected


def test_word_usually_without_diacritics_is_unchanged() -> None:
    assert restore_diacritics("resume the pod", ["Resume the pod.", "They resume.", "a résumé"]) == "resume the pod"


@given(st.text())
def test_no_passages_change_nothing(question: str) -> None:
    assert restore_diacritics(question, []) == question
