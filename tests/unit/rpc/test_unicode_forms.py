"""Normal forms of long texts."""

from __future__ import annotations

import random
import unicodedata
from typing import Final

import pytest

from shared.rpc.unicode_forms import Form, normalize

LETTERS: Final = (
    "aeo đĐươ\u0301\u0323\u0302ệẤ中日\u304b\u3099ﬁ①\u1100\u1161\u11a8각한ｶﾞㄱㅏㄱ\u0915\u093c\u0646\u064b\u200d🧑"
)
FORMS: Final[tuple[Form, ...]] = ("NFC", "NFD", "NFKC", "NFKD")


@pytest.mark.parametrize("form", FORMS)
def test_long_texts_have_the_normal_form_of_unicode(form: Form) -> None:
    """A text is normalized in parts, and no part begins inside of a letter with marks or of a Hangul syllable."""
    chosen = random.Random(5)
    for _ in range(20):
        text = "".join(chosen.choices(LETTERS, k=chosen.randrange(1000, 9000)))
        assert normalize(form, text) == unicodedata.normalize(form, text)


def test_letters_are_kept_in_a_run_of_marks() -> None:
    text = "a" + "\u0301\u0323" * 50_000 + "b"
    assert sorted(normalize("NFD", text)) == sorted(text)
