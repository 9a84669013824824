"""The space that passages are embedded in at present."""

from __future__ import annotations

from shared.knowledge.embedding import spaces
from shared.knowledge.models import EmbeddingSpace


def current_space() -> EmbeddingSpace:
    """What the settings embed with; a collection records it, and refuses another."""
    space = spaces.current_space()
    return EmbeddingSpace(space.model, space.dimensions, f"{space.question_prefix}/{space.passage_prefix}")
