"""The embedding space that new collections record."""

from shared.knowledge.models import RecordedSpace
from shared.search.embedding.models import current_space


def recorded_space() -> RecordedSpace:
    """Return the recorded part of the current space. A collection refuses passages of any other space."""
    space = current_space()
    return RecordedSpace(space.model, space.dimensions, f"{space.question_prefix}/{space.passage_prefix}")
