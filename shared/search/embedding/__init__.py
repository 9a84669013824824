"""Text embedding behind one interface: e5 in a function, Qdrant Cloud's inference, or Bedrock."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from shared.platform.config import config
from shared.search.embedding.models import current_space

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from shared.search.embedding.models import Space

Vector = list[float]


@dataclass(frozen=True, slots=True)
class RemoteText:
    """A text that the vector store embeds itself."""

    text: str
    model: str


@dataclass(frozen=True, slots=True)
class Embedding:
    """The vector of a text, and its token vectors if the model returns them."""

    vector: Vector | RemoteText
    tokens: list[Vector] | None = None


class Embedder(Protocol):
    """Embeds texts as vectors of one space."""

    @property
    def space(self) -> Space:
        """The space of all its vectors."""

    def passages(self, texts: Sequence[str]) -> list[Embedding]:
        """Embed passages, or raise `Unavailable`."""

    def question(self, text: str) -> Embedding:
        """Embed a question, or raise `Unavailable`."""

    def prepare_question(self, text: str) -> Callable[[], Embedding]:
        """Return a function that embeds a question, for callers that run it on another thread."""


def embedder() -> Embedder:
    """Return the configured embedder."""
    space = current_space()
    kind = config().embedder
    if kind == "function":
        from shared.search.embedding.function import FunctionEmbedder

        return FunctionEmbedder()
    if kind == "qdrant":
        from shared.search.embedding.store_inference import StoreInference

        return StoreInference(space)
    from shared.search.embedding.bedrock import Cohere, Titan

    return Cohere(space) if "cohere" in space.model else Titan(space)
