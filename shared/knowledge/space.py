"""The space that passages are embedded in at present."""

from __future__ import annotations

from shared.knowledge.models import Space


def current_space() -> Space:
    """What the settings embed with; a collection records it, and refuses another."""
    return Space("multilingual-e5-small", 384, "query: /passage: ")
