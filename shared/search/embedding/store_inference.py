"""Embedding by Qdrant Cloud, which embeds texts as it stores or searches them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from shared.search.embedding import Comparison, Embedding, RemoteText, after_previous

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from shared.search.embedding.models import Space


class StoreInference:
    """Passes texts with the model's prefixes to the store instead of vectors."""

    def __init__(self, space: Space) -> None:
        self.space = space

    def passages(self, texts: Sequence[str]) -> list[Embedding]:
        """Return the passages for the store to embed."""
        return [self._remote(self.space.passage_prefix + text) for text in texts]

    def passages_in_context(self, texts: Sequence[str], before: Sequence[Sequence[str]]) -> list[Embedding]:
        """Return the passages for the store to embed, each behind the text before it."""
        return self.passages(after_previous(texts, before))

    def compare(self, question: str, texts: Sequence[str], before: Sequence[Sequence[str]]) -> list[Comparison]:  # noqa: ARG002
        """Return nothing: only the store embeds."""
        return []

    def question(self, text: str) -> Embedding:
        """Return the question for the store to embed."""
        return self._remote(self.space.question_prefix + text)

    def prepare_question(self, text: str) -> Callable[[], Embedding]:
        """Return a function that returns the question for the store to embed."""
        return partial(self.question, text)

    def _remote(self, text: str) -> Embedding:
        return Embedding(RemoteText(text.replace("\0", " "), self.space.model))
