"""Texts as vectors behind one small interface: embedded e5, Qdrant Cloud's inference, or Bedrock."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Protocol

from shared.config import ConfigurationError, config

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Vector = list[float]


@dataclass(frozen=True, slots=True)
class Space:
    """Where a model puts texts: vectors of one space alone can be compared.

    Cosines of unrelated texts lie around `floor`, those of the closest `reach` above it.
    """

    model: str
    dimensions: int
    question_prefix: str
    passage_prefix: str
    floor: float
    reach: float
    tokens: bool = False

    def record(self) -> dict[str, Any]:
        """What a collection remembers of the space of its vectors."""
        remembered = asdict(self)
        return {name: remembered[name] for name in ("model", "dimensions", "question_prefix", "passage_prefix")}

    def require(self, recorded: Mapping[str, Any]) -> None:
        """Refuse what was recorded in another space."""
        different = {name: recorded.get(name) for name, value in self.record().items() if recorded.get(name) != value}
        if different:
            named = ", ".join(f"{name} {was!r} instead of {self.record()[name]!r}" for name, was in different.items())
            raise ConfigurationError(
                f"the knowledge index was made with {named}; set the embedding model back, or use an empty index"
            )


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


def embedder() -> Embedder:
    """The embedder that the settings name."""
    settings = config()
    if settings.embedder == "embedded":
        from shared.knowledge.embedding.e5 import E5

        return E5()
    if settings.embedder == "qdrant":
        from shared.knowledge.embedding.remote import InferredByStore

        return InferredByStore(settings.embedding_model)
    from shared.knowledge.embedding.bedrock import bedrock_embedder

    return bedrock_embedder(settings.embedding_model)
