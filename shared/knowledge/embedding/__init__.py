"""Texts as vectors behind one small interface: embedded e5, Qdrant Cloud's inference, or Bedrock."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from shared.config import config
from shared.knowledge.embedding.spaces import current_space

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from shared.knowledge.embedding.spaces import Space

Vector = list[float]


@dataclass(frozen=True, slots=True)
class RemoteText:
    """A text that the vector store itself turns into a vector."""

    text: str
    model: str


@dataclass(frozen=True, slots=True)
class Embedding:
    """The meaning of a text, and where the model gives them, of its parts."""

    vector: Vector | RemoteText
    tokens: list[Vector] | None = None


class Embedder(Protocol):
    """Turns texts into vectors of one space."""

    @property
    def space(self) -> Space:
        """The space of all its vectors."""

    def passages(self, texts: Sequence[str]) -> list[Embedding]:
        """The vectors of passages, or `Unavailable`."""

    def question(self, text: str) -> Embedding:
        """The vector of a question, or `Unavailable`."""

    def asking(self, text: str) -> Callable[[], Embedding]:
        """What gives the vector of a question, for whoever has something else to do meanwhile."""


def embedder() -> Embedder:
    """The embedder that the settings name."""
    space = current_space()
    kind = config().embedder
    if kind == "embedded":
        from shared.knowledge.embedding.e5 import E5

        return E5()
    if kind == "qdrant":
        from shared.knowledge.embedding.remote import InferredByStore

        return InferredByStore(space)
    from shared.knowledge.embedding.bedrock import Cohere, Titan

    return Cohere(space) if "cohere" in space.model else Titan(space)
