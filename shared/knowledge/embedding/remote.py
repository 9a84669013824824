"""Embedding left to Qdrant Cloud, which turns texts into vectors as it stores or searches them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shared.config import ConfigurationError
from shared.knowledge.embedding import Embedding, RemoteText, Space

if TYPE_CHECKING:
    from collections.abc import Sequence

_SPACES = {
    space.model.lower(): space
    for space in (
        Space("intfloat/multilingual-e5-small", 384, "query: ", "passage: ", floor=0.7, reach=0.3),
        Space("intfloat/multilingual-e5-large", 1024, "query: ", "passage: ", floor=0.7, reach=0.3),
    )
}


class InferredByStore:
    """Sends texts, with the prefixes that the model was trained on, in place of vectors."""

    def __init__(self, model: str) -> None:
        model = model or "intfloat/multilingual-e5-small"
        if model.lower() not in _SPACES:
            raise ConfigurationError(f"KHO_EMBEDDING_MODEL is '{model}'; it can be one of: {', '.join(_SPACES)}")
        self.space = _SPACES[model.lower()]

    def passages(self, texts: Sequence[str]) -> list[Embedding]:
        """The passages, for the store to embed."""
        return [self._left(self.space.passage_prefix + text) for text in texts]

    def question(self, text: str) -> Embedding:
        """The question, for the store to embed."""
        return self._left(self.space.question_prefix + text)

    def _left(self, text: str) -> Embedding:
        return Embedding(RemoteText(text.replace("\0", " "), self.space.model))
