"""The embedding space of the current settings."""

from __future__ import annotations

from shared.knowledge.embedding import spaces
from shared.knowledge.models import EmbeddingSpace


def current_space() -> EmbeddingSpace:
    """Return the embedding space of the current settings. A collection records its space and refuses any other."""
    space = spaces.current_space()
    return EmbeddingSpace(space.model, space.dimensions, f"{space.question_prefix}/{space.passage_prefix}")
