"""The passage index: written when documents change, read by searches."""

from __future__ import annotations

import math
import threading
from dataclasses import asdict, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from shared.platform.background import map_concurrently
from shared.platform.config import config
from shared.rpc.errors import Unavailable
from shared.search.bm25 import passage_terms
from shared.search.document_words import document_terms, is_of_words, with_words, words_collection, words_id
from shared.search.embedding import Embedder, embedder
from shared.search.hybrid_search import HybridSearch
from shared.search.passages import SPLITTER, Passage
from shared.search.reranking import reranker
from shared.search.store import Bounds, Point, Scope, VectorStore, vector_store

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from concurrent.futures import Future

    from shared.search.embedding import Embedding
    from shared.search.hybrid_search import Candidates, Ranking
    from shared.search.passages import DocumentRef, SearchQuestion
    from shared.search.store import Kind

_BATCH: Final = 16
"""The passages that are embedded by one call and written together. Closing waits for the calls in progress."""
_CLOSED: Final = "The index is closed."
_open_lock: Final = threading.Lock()
_is_closing: Final = threading.Event()


class Metadata(NamedTuple):
    """The metadata by which passages are filtered, each key with a value, as of a revision of the document."""

    values: tuple[str, ...] = ()
    revision: int = 0

    def fields(self) -> dict[str, Any]:
        """Return the payload fields of points, none without a revision."""
        return {"metadata": list(self.values), "metadata_revision": self.revision} if self.revision else {}


NO_METADATA: Final = Metadata()


class PassageIndex:
    """The passages of all tenants, each visible to its own tenant only.

    Each document has a version record: twice its revision, plus one if it was deleted at that revision. Anything older
    than the record is replaced or removed, in whichever order writers arrive.
    """

    def __init__(self, embedder: Embedder, store: VectorStore, retriever: HybridSearch | None = None) -> None:
        self._embedder = embedder
        self._store = store
        self._retriever = retriever or HybridSearch(embedder, store)
        self._is_closed = False

    def replace(
        self,
        document: DocumentRef,
        revision: int,
        passages: Sequence[Passage],
        *,
        resume: bool = False,
        metadata: Metadata = NO_METADATA,
    ) -> bool:
        """Make `passages` the only passages of `document`. Return False if a newer revision is stored.

        The call is idempotent. A concurrent reader may see passages of both revisions. With `resume`, passages that
        an interrupted call stored at this revision are not embedded again.
        """
        version = 2 * revision
        held = self._version(document)
        if held > version:
            return self._delete_older(document) == version
        batches = [passages[start : start + _BATCH] for start in range(0, len(passages), _BATCH)]
        if resume and len(batches) > 1:
            batches = [missing for batch in batches if (missing := self._not_stored(batch, version))]
        fields = metadata.fields()
        embed = partial(self._points, version=version, fields=fields)
        for points in map_concurrently(embed, batches, min(len(batches), config().embedding_calls) or 1):
            self._store.write(points, version)
        if held == version:  # another splitter may have made more passages of this revision
            ids = tuple(passage.id for passage in passages)
            self._store.erase(replace(_older(document, version + 1), kind="passage", excluded_ids=ids))
        words = Point(words_id(document), _word_fields(document, version), terms=document_terms(passages))
        self._store.write([words, _version_record(document, version, fields)], version)
        return self._delete_older(document) == version

    def set_metadata(self, document: DocumentRef, metadata: Metadata) -> None:
        """Give the points of `document` this metadata, unless they have that of a newer revision."""
        older = Bounds("metadata_revision", end=metadata.revision)
        self._store.set_fields(replace(scope_of(document), bounds=(older,)), metadata.fields())

    def metadata(self, document: DocumentRef) -> list[str] | None:
        """Return the values of the metadata that the index has of `document`, or None if it has none of its own."""
        record = self._read_record(document)
        return None if record is None else record.get("metadata")

    def replace_single(self, passage: Passage) -> None:
        """Make `passage` the only passage of a document that never has others, unless a newer revision is stored.

        An older revision has the same point, so the write replaces it. A concurrent deletion is repeated.
        """
        version = 2 * passage.revision
        self._store.write([*self._points([passage], version, {}), _version_record(passage.document, version)], version)
        if self._version(passage.document) != version:
            self._delete_older(passage.document)

    def delete(self, document: DocumentRef, revision: int) -> bool:
        """Delete the passages of `document`. Return False if a revision newer than `revision` is stored.

        Later writes at `revision` or an older one are ignored.
        """
        version = 2 * revision + 1
        self._store.write([_version_record(document, version)], version)
        return self._delete_older(document) == version

    def forget(self, document: DocumentRef) -> None:
        """Erase `document` including its version record, for documents that do not exist."""
        self.erase(scope_of(document))

    def delete_collection(self, tenant_id: str, collection: str) -> None:
        """Erase a collection."""
        self.erase(Scope(tenant_id, (collection,)))

    def delete_tenant(self, tenant_id: str) -> None:
        """Erase a tenant."""
        self._store.erase(Scope(tenant_id))

    def holds(self, document: DocumentRef, revision: int) -> bool:
        """Return True if the index holds `revision` or a newer one of `document`, and it is not deleted."""
        version = self._version(document)
        return version >= 2 * revision and version % 2 == 0

    def is_outdated(self, document: DocumentRef) -> bool:
        """Return True if an earlier splitter has made the passages of `document`."""
        record = self._read_record(document)
        return record is not None and _splitter(record) < SPLITTER

    def passages(self, document: DocumentRef, ordinals: Iterable[int]) -> list[Passage]:
        """Return the stored passages at these positions of a document, in their order. They may be of any revision."""
        self._require_open()
        ids = [document.passage_id(ordinal) for ordinal in ordinals]
        stored = self._store.read(ids, ("passage",)) if ids else {}
        return [Passage.from_record(stored[id_]["passage"]) for id_ in ids if id_ in stored]

    def count(self, tenant_id: str, collection: str | None = None) -> int:
        """Return the number of passages of a tenant or of one of its collections."""
        collections = None if collection is None else (collection,)
        return self._store.count(Scope(tenant_id, collections, kind="passage"))

    def count_documents(self) -> int:
        """Return the number of documents that the index knows, of all tenants, deleted ones included."""
        return self._store.count_documents()

    def documents(self, tenant_id: str = "") -> set[Scope]:
        """Return the indexed documents of one tenant, or of all."""
        return {each for each in self._store.documents(tenant_id) if not is_of_words(each)}

    def erase(self, scope: Scope) -> None:
        """Erase the points of `scope`, and the words of its documents."""
        self._store.erase(with_words(scope))

    def embed(self, text: str) -> Future[Embedding]:
        """Begin to embed the question of a search in the background."""
        return self._retriever.embed(text)

    def candidates(self, question: SearchQuestion, embedding: Future[Embedding] | None = None) -> Candidates:
        """Return the passages that may answer `question`. `embedding` is the question's, if the caller has begun it."""
        return self._retriever.candidates(question, embedding)

    def rank(self, candidates: Candidates, deadline: float = math.inf) -> Ranking:
        """Return the best candidates, and how they were ranked. Skip reranking that is not done by `deadline`."""
        return self._retriever.rank(candidates, deadline)

    def search(self, question: SearchQuestion, deadline: float = math.inf) -> Ranking:
        """Return the passages that answer `question`, best first."""
        return self.rank(self.candidates(question), deadline)

    def close(self) -> None:
        """Close the store. Everything written is kept; a writer in progress gets `Unavailable`."""
        self._is_closed = True
        self._store.close()

    def _require_open(self) -> None:
        if self._is_closed:
            raise Unavailable(_CLOSED)

    def _points(self, passages: Sequence[Passage], version: int, fields: Mapping[str, Any]) -> list[Point]:
        """Embed passages. Return their points."""
        self._require_open()
        embeddings = self._embedder.passages([passage.embedded_text for passage in passages])
        return [
            Point(
                passage.id,
                filter_fields(passage.document, "passage", version)
                | {"tags": list(passage.tags), "passage": asdict(passage), **fields},
                embedding.vector,
                embedding.tokens,
                passage_terms(passage.searchable_text),
            )
            for passage, embedding in zip(passages, embeddings, strict=True)
        ]

    def _not_stored(self, passages: Sequence[Passage], version: int) -> list[Passage]:
        """Return the passages that are not stored at this version, as this splitter has made them."""
        stored = self._store.read([passage.id for passage in passages], ("version", "splitter"))
        current = {id_ for id_, it in stored.items() if it["version"] == version and _splitter(it) == SPLITTER}
        return [passage for passage in passages if passage.id not in current]

    def _version(self, document: DocumentRef) -> int:
        record = self._read_record(document)
        return int(record["version"]) if record else 0

    def _read_record(self, document: DocumentRef) -> dict[str, Any] | None:
        self._require_open()
        return self._store.read([document.id]).get(document.id)

    def _delete_older(self, document: DocumentRef) -> int:
        """Erase passages and words older than the document's version record. Return that version."""
        version = self._version(document)
        self._store.erase(with_words(_older(document, version)))
        return version


def scope_of(document: DocumentRef) -> Scope:
    """Return the scope of a document's points."""
    return Scope(document.tenant_id, (document.collection,), document.id)


def _older(document: DocumentRef, version: int) -> Scope:
    return replace(scope_of(document), bounds=(Bounds("version", end=version),))


def knowledge_index() -> PassageIndex:
    """Return the process-wide index. The embedded store allows one instance per process."""
    with _open_lock:  # two first callers must not open it twice
        return _open_index()


def close_index() -> None:
    """Close this process's index for good. An index that is being opened is closed then; no other is opened later."""
    _is_closing.set()
    with _open_lock:
        if _open_index.cache_info().currsize:
            _open_index().close()


@cache
def _open_index() -> PassageIndex:
    if _is_closing.is_set():
        raise Unavailable(_CLOSED)
    passage_embedder = embedder()
    store = vector_store(passage_embedder.space)
    parts = config().reranker == "late-interaction" and passage_embedder.space.tokens
    return PassageIndex(
        passage_embedder, store, HybridSearch(passage_embedder, store, parts=parts, reranker=reranker())
    )


def filter_fields(document: DocumentRef, kind: Kind, version: int) -> dict[str, Any]:
    """Return the payload fields by which the points of a document are filtered."""
    return {
        "tenant": document.tenant_id,
        "collection": document.collection,
        "document": document.id,
        "kind": kind,
        "version": version,
        "splitter": SPLITTER,
    }


def _word_fields(document: DocumentRef, version: int) -> dict[str, Any]:
    return filter_fields(document, "words", version) | {"collection": words_collection(document.collection)}


def _splitter(point: Mapping[str, Any]) -> int:
    """Return the version of the splitter that has made a point. The first did not note it."""
    return int(point.get("splitter", 1))


def _version_record(document: DocumentRef, version: int, fields: Mapping[str, Any] | None = None) -> Point:
    return Point(document.id, filter_fields(document, "document", version) | dict(fields or {}))
