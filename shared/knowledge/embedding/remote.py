"""Embedding left to Qdrant Cloud, which turns texts into vectors as it stores or searches them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from shared.knowledge.embedding import Embedding, RemoteText

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from shared.knowledge.embedding.spaces import Space


class InferredByStore:
    """Sends texts, with the prefixes that the model was trained on, in place of vectors."""

    def __init__(self, space: Space) -> None:
        self.space = space

    def passages(self, texts: Sequence[str]) -> list[Embedding]:
        """The passages, for the store to embed."""
        return [self._left(self.space.passage_prefix + text) for text in texts]

    def question(self, text: str) -> Embedding:
        """The question, for the store to embed."""
        return self._left(self.space.question_prefix + text)

    def asking(self, text: str) -> Callable[[], Embedding]:
        """What gives the vector of a question, for whoever has something else to do meanwhile."""
        return partial(self.question, text)

    def _left(self, text: str) -> Embedding:
        return Embedding(RemoteText(text.replace("\0", " "), self.space.model))
