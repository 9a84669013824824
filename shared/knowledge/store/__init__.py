"""Vectors of passages behind one small interface: a Qdrant server or Cloud, or Qdrant's engine in this process."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from shared.aws.secrets_manager import get_secret
from shared.config import ConfigurationError, config

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from shared.knowledge.bm25 import SparseTerms
    from shared.knowledge.embedding import RemoteText, Vector
    from shared.knowledge.embedding.spaces import Space

Kind = Literal["document", "passage"]

MEANING: Final = "meaning"
PARTS: Final = "parts"
TERMS: Final = "terms"
KEYWORDS: Final = ("collection", "document", "kind", "tags")
"""What points are filtered by, beside the tenant; a payload's other fields are never searched."""


@dataclass(frozen=True, slots=True)
class Point:
    """One thing in the store; a passage has vectors, the record of a document's version has none."""

    id: str
    payload: dict[str, Any]
    meaning: Vector | RemoteText | None = None
    parts: list[Vector] | None = None
    terms: SparseTerms | None = None


@dataclass(frozen=True, slots=True)
class Scope:
    """Which points are meant: never more than one tenant's."""

    tenant_id: str
    collections: tuple[str, ...] | None = None
    document: str | None = None
    kind: Kind | None = None
    tags: tuple[str, ...] = ()
    ids: tuple[str, ...] | None = None
    without: tuple[str, ...] = ()
    """Documents whose points are not meant."""
    before: int | None = None
    """Those of a version before this one."""


@dataclass(frozen=True, slots=True)
class VectorQuery:
    """One search: the points of `scope` nearest to a meaning, its parts, or terms by their rarity `among`."""

    near: Vector | RemoteText | list[Vector] | SparseTerms
    scope: Scope
    limit: int
    among: Scope | None = None
    exact: bool = False
    """Whether every point is looked at, where meanings are otherwise found by their links."""


HOLDER: Final = ("tenant", "collection", "document")
"""What a payload tells of the document that its point is of."""


def document_of(payload: Mapping[str, Any]) -> Scope:
    """The points of the document that the point of `payload` is of."""
    tenant, collection, document = (payload[name] for name in HOLDER)
    return Scope(tenant, (collection,), document)


class VectorStore(Protocol):
    """Keeps points of one space."""

    def write(self, points: Sequence[Point], version: int) -> None:
        """Keep `points`, which are all of `version`, but for those that are there in a newer one."""

    def erase(self, scope: Scope) -> None:
        """Forget the points of `scope`."""

    def read(self, ids: Sequence[str], fields: Sequence[str] = ()) -> dict[str, dict[str, Any]]:
        """The payloads of those of `ids` that are there, or these fields of them."""

    def terms(self, ids: Sequence[str]) -> dict[str, dict[int, float]]:
        """The weights of the terms of those of `ids` that are there."""

    def count(self, scope: Scope) -> int:
        """How many points `scope` has."""

    def documents(self, tenant_id: str = "") -> set[Scope]:
        """The documents that there are points of: a tenant's, or everybody's."""

    def search(self, asks: Sequence[VectorQuery]) -> list[dict[str, float]]:
        """For each of `asks` the ids found, best first, with their scores."""

    def close(self) -> None:
        """Let go of the store; what was written is kept."""


def vector_store(space: Space, own: str = "") -> VectorStore:
    """The store that the settings name, for vectors of `space`; `own` is what has one apart from the others."""
    settings = config()
    if settings.qdrant_url:
        from shared.knowledge.store.server import connect

        return connect(
            space,
            settings.qdrant_url,
            get_secret("KHO_QDRANT_KEY"),
            "-".join(filter(None, (settings.qdrant_collection, own))),
        )
    if not settings.qdrant_folder:
        raise ConfigurationError(
            "KHO_QDRANT_URL must name a Qdrant server, or KHO_QDRANT_FOLDER a folder of this machine"
        )
    from shared.knowledge.store.embedded import EmbeddedVectorStore

    return EmbeddedVectorStore(space, str(Path(settings.qdrant_folder, own)))
