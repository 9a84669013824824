"""Document embedding: one vector per text with a title, in any language."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Final

from shared.search.embedding import Embedding, RemoteText
from shared.search.embedding.language_centering import remove_language, unit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from shared.search.embedding import Embedder, Vector
    from shared.search.embedding.models import Space

_REFINEMENT: Final = ", title and text, without language"


def document_space(space: Space) -> Space:
    """Return the space of document vectors, given the space `space` of their model."""
    # The language components were measured with the model that returns token vectors.
    if not space.tokens:
        return space
    scale = space.calibration
    calibration = replace(scale, unrelated=scale.centered_unrelated, reach=scale.centered_reach)
    return replace(space, tokens=False, model=space.model + _REFINEMENT, calibration=calibration)


class DocumentEmbedder:
    """An embedder without token vectors that gives a text's first line as much weight as the whole text."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._refines = embedder.space.tokens
        self.space = document_space(embedder.space)
        # A stored text is compared next, and a page's caller often requests the next page.
        self._passage = lru_cache(maxsize=16)(self._embed_passage)
        self._question = lru_cache(maxsize=256)(self._embed_question)

    def passages(self, texts: Sequence[str]) -> list[Embedding]:
        """Embed passages."""
        return [self._passage(text) for text in texts]

    def question(self, text: str) -> Embedding:
        """Embed a question."""
        return self._question(text)

    def prepare_question(self, text: str) -> Callable[[], Embedding]:
        """Return a function that embeds a question."""
        return partial(self.question, text)

    def _embed_question(self, text: str) -> Embedding:
        return Embedding(self._refine(self._embedder.question(text).vector, text))

    def _embed_passage(self, text: str) -> Embedding:
        title = text.partition("\n")[0]
        parts = [title, text] if self._refines and title != text else [text]
        vectors = [
            self._refine(each.vector, part) for each, part in zip(self._embedder.passages(parts), parts, strict=True)
        ]
        return Embedding(vectors[0] if len(vectors) == 1 else _mean(vectors))

    def _refine(self, vector: Vector | RemoteText, text: str) -> Vector | RemoteText:
        return vector if isinstance(vector, RemoteText) or not self._refines else remove_language(vector, text)


def _mean(vectors: Sequence[Vector | RemoteText]) -> Vector:
    stored = [vector for vector in vectors if not isinstance(vector, RemoteText)]
    return unit(map(sum, zip(*stored, strict=True)))
