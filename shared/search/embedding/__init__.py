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


@dataclass(frozen=True, slots=True)
class Comparison:
    """The cosine of a question and a passage, and the mean of its tokens' best cosines if the model has them."""

    whole: float
    tokens: float | None = None


class ContextEmbedder(Embedder, Protocol):
    """An embedder that also embeds a short text as it is understood after the texts before it."""

    def passages_in_context(self, texts: Sequence[str], before: Sequence[Sequence[str]]) -> list[Embedding]:
        """Embed passages, each after the texts `before` it, oldest first, or raise `Unavailable`."""

    def compare(self, question: str, texts: Sequence[str], before: Sequence[Sequence[str]]) -> list[Comparison]:
        """Compare a question with passages in context that are not stored, or raise `Unavailable`.

        An embedder that leaves embedding to the store returns nothing.
        """


def after_previous(texts: Sequence[str], before: Sequence[Sequence[str]]) -> list[str]:
    """Return each text behind the last one before it, for models whose outputs cannot be taken token by token."""
    return ["\n".join([*previous[-1:], text]) for text, previous in zip(texts, before, strict=True)]


def embedder() -> ContextEmbedder:
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
