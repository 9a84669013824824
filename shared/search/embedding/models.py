"""The vector spaces of the supported models, available without loading a model."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Final

from shared.platform.config import ConfigurationError, config
from shared.platform.formats import INDEX_FORMAT, format_record, require_known_format
from shared.search.calibration import Calibration
from shared.search.passages import SPLITTER

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Space:
    """A vector space. Only vectors of one space can be compared."""

    model: str
    dimensions: int
    question_prefix: str
    passage_prefix: str
    calibration: Calibration
    tokens: bool = False

    def record(self) -> dict[str, Any]:
        """Return what an index records when it is created: its format, the splitter, and the fields of the space."""
        return format_record(INDEX_FORMAT) | {"splitter": SPLITTER} | self._fields()

    def require(self, recorded: Mapping[str, Any], index: str) -> None:
        """Raise an error if an index was made by a newer program or in another space, as it has recorded."""
        require_known_format(index, recorded, INDEX_FORMAT)
        own = self._fields()
        different = {name: recorded.get(name) for name, value in own.items() if recorded.get(name) != value}
        if different:
            differences = ", ".join(f"{name} {was!r} instead of {own[name]!r}" for name, was in different.items())
            raise ConfigurationError(
                f"the knowledge index was made with {differences}; set the embedding model back, or use an empty index"
            )

    def _fields(self) -> dict[str, Any]:
        return {each.name: getattr(self, each.name) for each in fields(self) if each.name != "calibration"}


E5_SMALL: Final = Space("intfloat/multilingual-e5-small", 384, "query: ", "passage: ", Calibration(), tokens=True)
# The same vectors as the embedded model's, but without token vectors.
_INFERRED: Final = (replace(E5_SMALL, tokens=False),)
_BEDROCK: Final = (
    Space("cohere.embed-multilingual-v3", 1024, "search_query", "search_document", Calibration(0.2, 0.6)),
    Space("amazon.titan-embed-text-v2:0", 1024, "", "", Calibration(0.0, 0.7)),
)


def current_space() -> Space:
    """Return the space of the configured embedder."""
    settings = config()
    if settings.embedder == "function":
        return E5_SMALL
    spaces = _INFERRED if settings.embedder == "qdrant" else _BEDROCK
    model = settings.embedding_model or spaces[0].model
    for space in spaces:
        if space.model == model:
            return space
    named = ", ".join(space.model for space in spaces)
    raise ConfigurationError(
        f"KHO_EMBEDDING_MODEL is '{model}'; with KHO_EMBEDDER={settings.embedder} it can be: {named}"
    )
