"""Vector stores behind one interface: a Qdrant server, Qdrant Cloud, or Qdrant's engine on one machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol

from shared.platform.config import ConfigurationError, config
from shared.platform.runtime import runtime

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from shared.search.bm25 import SparseTerms
    from shared.search.embedding import RemoteText, Vector
    from shared.search.embedding.models import Space

Kind = Literal["document", "passage", "words", "message", "removed"]

MEANING: Final = "meaning"
PARTS: Final = "parts"
TERMS: Final = "terms"
KEYWORDS: Final = ("collection", "document", "kind", "tags", "role", "subject", "metadata")
INTEGERS: Final = ("version", "at", "expires", "metadata_revision")
"""The payload fields that points are filtered by, in addition to the tenant. Other fields are never searched."""


@dataclass(frozen=True, slots=True)
class Point:
    """A point of the store. A passage or message has vectors, a document's version record has none."""

    id: str
    payload: dict[str, Any]
    meaning: Vector | RemoteText | None = None
    parts: list[Vector] | None = None
    terms: SparseTerms | None = None


class Bounds(NamedTuple):
    """The values that a field of integers may have: from `start` on, and below `end`."""

    field: str
    start: int | None = None
    end: int | None = None


@dataclass(frozen=True, slots=True)
class Scope:
    """A selection of points of one tenant."""

    tenant_id: str
    collections: tuple[str, ...] | None = None
    document: str | None = None
    kind: Kind | None = None
    tags: tuple[str, ...] = ()
    """Each of them is required."""
    metadata: tuple[tuple[str, ...], ...] = ()
    """Of each of them, one value is required."""
    roles: tuple[str, ...] = ()
    """If there are some, one of them is required."""
    subject: str | None = None
    ids: tuple[str, ...] | None = None
    excluded_documents: tuple[str, ...] = ()
    """Documents whose points are excluded."""
    excluded_ids: tuple[str, ...] = ()
    bounds: tuple[Bounds, ...] = ()

    @property
    def required_values(self) -> list[tuple[str, str]]:
        """The payload fields, each with a value that it must have or contain."""
        fields = (
            ("tenant", self.tenant_id),
            ("document", self.document),
            ("kind", self.kind),
            ("subject", self.subject),
        )
        return [*((name, value) for name, value in fields if value is not None), *(("tags", tag) for tag in self.tags)]


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


class VectorStore(Protocol):
    """A store of points in one embedding space."""

    def write(self, points: Sequence[Point], version: int) -> None:
        """Upsert `points` at `version`, skipping ids stored at a newer version."""

    def set_fields(self, scope: Scope, fields: dict[str, Any]) -> None:
        """Set these fields of the payloads of the points of `scope`."""

    def erase(self, scope: Scope) -> None:
        """Delete the points of `scope`."""

    def count(self, scope: Scope) -> int:
        """Return the number of points in `scope`."""

    def read(self, ids: Sequence[str], fields: Sequence[str] = ()) -> dict[str, dict[str, Any]]:
        """Return the payloads of the stored `ids`, or only these fields of them."""

    def terms(self, ids: Sequence[str], numbers: Sequence[int] | None = None) -> dict[str, dict[int, float]]:
        """Return the term weights of the stored `ids`, or only those of the terms `numbers`."""

    def read_with_terms(
        self, ids: Sequence[str], numbers: Sequence[int]
    ) -> dict[str, tuple[dict[str, Any], dict[int, float]]]:
        """Return the payloads of the stored `ids`, and their weights of the terms `numbers`."""

    def count_documents(self) -> int:
        """Return the number of documents that the index knows, of all tenants, deleted ones included."""

    def documents(self, tenant_id: str = "") -> set[Scope]:
        """Return the documents that have points, of one tenant or of all."""

    def latest(self, scope: Scope, limit: int) -> list[dict[str, Any]]:
        """Return the payloads of the points of `scope` with the latest times `at`, latest first."""

    def search(self, queries: Sequence[VectorQuery]) -> list[dict[str, float]]:
        """Return for each query the ids found, best first, with their scores."""

    def close(self) -> None:
        """Close the store. Everything written is kept."""


class RecordStore(VectorStore, Protocol):
    """A store whose engine reads and writes records. Their evaluation is the same for all engines."""

    def _retrieve(
        self, ids: Sequence[str], *, payload: Sequence[str] | bool, vectors: Sequence[str] = ()
    ) -> Sequence[Any]:
        """Return the records of the stored `ids`, with these fields of their payloads and these vectors."""

    def _scroll(self, scope: Scope | None, offset: Any) -> tuple[Sequence[Any], Any]:
        """Return a page of records with the fields of their documents, and the offset of the next page."""

    def _query(self, queries: Sequence[VectorQuery]) -> Iterable[Iterable[Any]]:
        """Return for each query the scored points, best first."""

    def read(self, ids: Sequence[str], fields: Sequence[str] = ()) -> dict[str, dict[str, Any]]:
        """Return the payloads of the stored `ids`, or only these fields of them."""
        return {str(record.id): record.payload or {} for record in self._retrieve(ids, payload=fields or True)}

    def terms(self, ids: Sequence[str], numbers: Sequence[int] | None = None) -> dict[str, dict[int, float]]:
        """Return the term weights of the stored `ids`, or only those of the terms `numbers`."""
        records = self._retrieve(ids, payload=False, vectors=[TERMS])
        return {str(record.id): weights for record in records if (weights := _term_weights(record, numbers))}

    def read_with_terms(
        self, ids: Sequence[str], numbers: Sequence[int]
    ) -> dict[str, tuple[dict[str, Any], dict[int, float]]]:
        """Return the payloads of the stored `ids`, and their weights of the terms `numbers`."""
        records = self._retrieve(ids, payload=True, vectors=[TERMS])
        return {str(record.id): (record.payload or {}, _term_weights(record, numbers)) for record in records}

    def documents(self, tenant_id: str = "") -> set[Scope]:
        """Return the documents that have points, of one tenant or of all."""
        documents: set[Scope] = set()
        offset = None
        while True:
            records, offset = self._scroll(Scope(tenant_id) if tenant_id else None, offset)
            for record in records:
                tenant, collection, document = (record.payload[name] for name in DOCUMENT_FIELDS)
                documents.add(Scope(tenant, (collection,), document))
            if offset is None:
                return documents

    def search(self, queries: Sequence[VectorQuery]) -> list[dict[str, float]]:
        """Return for each query the ids found, best first, with their scores."""
        return [{str(point.id): point.score for point in points} for points in self._query(queries)]


def _term_weights(record: Any, numbers: Sequence[int] | None) -> dict[int, float]:
    vectors = record.vector or {}
    if TERMS not in vectors:
        return {}
    weights = dict(zip(vectors[TERMS].indices, vectors[TERMS].values, strict=True))
    return weights if numbers is None else {number: weights[number] for number in numbers if number in weights}


def is_whole(shard: Path) -> bool:
    """Return False if the folder of an embedded index has lost its files. The engine takes it for an empty index."""
    return (shard / "edge_config.json").exists() and any(shard.glob("segments/*/segment.json"))


def vector_store(space: Space, suffix: str = "") -> VectorStore:
    """Return the configured store for vectors of `space`. `suffix` separates one index from the others."""
    settings = config()
    if settings.qdrant_url:
        from shared.search.store.server import connect

        return connect(
            space,
            settings.qdrant_url,
            "-".join(filter(None, (settings.qdrant_collection, suffix))),
        )
    if not (settings.qdrant_folder and runtime.open_index):
        raise ConfigurationError(
            "KHO_QDRANT_URL must name a Qdrant server, or KHO_QDRANT_FOLDER a folder of this machine"
        )
    return runtime.open_index(space, Path(settings.qdrant_folder, suffix))
