"""Vector stores behind one interface: a Qdrant server, Qdrant Cloud, or Qdrant's engine in this process."""

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
"""The payload fields that points are filtered by, in addition to the tenant. Other fields are never searched."""


@dataclass(frozen=True, slots=True)
class Point:
    """A point of the store. A passage has vectors, a document's version record has none."""

    id: str
    payload: dict[str, Any]
    meaning: Vector | RemoteText | None = None
    parts: list[Vector] | None = None
    terms: SparseTerms | None = None


@dataclass(frozen=True, slots=True)
class Scope:
    """A selection of points of one tenant."""

    tenant_id: str
    collections: tuple[str, ...] | None = None
    document: str | None = None
    kind: Kind | None = None
    tags: tuple[str, ...] = ()
    ids: tuple[str, ...] | None = None
    excluded_documents: tuple[str, ...] = ()
    """Documents whose points are excluded."""
    before_version: int | None = None
    """Selects the points of older versions only."""


@dataclass(frozen=True, slots=True)
class VectorQuery:
    """A search for the points of `scope` nearest to a vector, token vectors or terms. Rarity is counted in `corpus`."""

    near: Vector | RemoteText | list[Vector] | SparseTerms
    scope: Scope
    limit: int
    corpus: Scope | None = None
    exact: bool = False
    """Compare every point; otherwise vectors are searched through the HNSW graph."""


DOCUMENT_FIELDS: Final = ("tenant", "collection", "document")
"""The payload fields that identify a point's document."""


def document_of(payload: Mapping[str, Any]) -> Scope:
    """Return the scope of the document that a payload belongs to."""
    tenant, collection, document = (payload[name] for name in DOCUMENT_FIELDS)
    return Scope(tenant, (collection,), document)


class VectorStore(Protocol):
    """A store of points in one embedding space."""

    def write(self, points: Sequence[Point], version: int) -> None:
        """Upsert `points` at `version`, skipping ids stored at a newer version."""

    def erase(self, scope: Scope) -> None:
        """Delete the points of `scope`."""

    def read(self, ids: Sequence[str], fields: Sequence[str] = ()) -> dict[str, dict[str, Any]]:
        """Return the payloads of the stored `ids`, or only these fields of them."""

    def terms(self, ids: Sequence[str]) -> dict[str, dict[int, float]]:
        """Return the term weights of the stored `ids`."""

    def count(self, scope: Scope) -> int:
        """Return the number of points in `scope`."""

    def documents(self, tenant_id: str = "") -> set[Scope]:
        """Return the documents that have points, of one tenant or of all."""

    def search(self, queries: Sequence[VectorQuery]) -> list[dict[str, float]]:
        """Return for each query the ids found, best first, with their scores."""

    def close(self) -> None:
        """Close the store. Everything written is kept."""


def vector_store(space: Space, suffix: str = "") -> VectorStore:
    """Return the configured store for vectors of `space`. `suffix` separates one index from the others."""
    settings = config()
    if settings.qdrant_url:
        from shared.knowledge.store.server import connect

        return connect(
            space,
            settings.qdrant_url,
            get_secret("KHO_QDRANT_KEY"),
            "-".join(filter(None, (settings.qdrant_collection, suffix))),
        )
    if not settings.qdrant_folder:
        raise ConfigurationError(
            "KHO_QDRANT_URL must name a Qdrant server, or KHO_QDRANT_FOLDER a folder of this machine"
        )
    from shared.knowledge.store.embedded import EmbeddedVectorStore

    return EmbeddedVectorStore(space, str(Path(settings.qdrant_folder, suffix)))
