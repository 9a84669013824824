"""The index of passages: written by whoever changes documents, searched by whoever asks."""

from __future__ import annotations

import math
import threading
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from shared.config import config
from shared.knowledge.bm25 import passage_terms
from shared.knowledge.embedding import Embedder, embedder
from shared.knowledge.hybrid_search import HybridSearch
from shared.knowledge.reranking import reranker
from shared.knowledge.store import Point, Scope, VectorStore, vector_store
from shared.rpc.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from shared.knowledge.hybrid_search import Ranking
    from shared.knowledge.passages import DocumentRef, Passage, SearchHit, SearchQuestion

_AT_ONCE: Final = 32
"""Whoever closes the index waits for so many passages to be embedded."""
_CLOSED: Final = "The index is closed."
_opening: Final = threading.Lock()
_closing: Final = threading.Event()


class PassageIndex:
    """Passages of all tenants, each seen by its own alone.

    Each document has a record of its version: twice its revision, one more where it was deleted at that revision.
    Whatever is older than the record gives way to it, in whichever order writers come.
    """

    def __init__(self, embedder: Embedder, store: VectorStore, retriever: HybridSearch | None = None) -> None:
        self._embedder = embedder
        self._store = store
        self._retriever = retriever or HybridSearch(embedder, store)
        self._is_closed = False

    def replace(self, document: DocumentRef, revision: int, passages: Sequence[Passage]) -> bool:
        """Let `passages` be all that is found of `document`, unless a newer revision is there already (False).

        Repeating it changes nothing; a reader between the two may see passages of both revisions.
        """
        version = 2 * revision
        if self._version(document) > version:
            return self._swept(document) == version
        for start in range(0, len(passages), _AT_ONCE):
            self._require_open()
            batch = passages[start : start + _AT_ONCE]
            embeddings = self._embedder.passages([passage.meant for passage in batch])
            points = [
                Point(
                    passage.id,
                    _payload(passage, version),
                    embedding.vector,
                    embedding.tokens,
                    passage_terms(passage.searchable),
                )
                for passage, embedding in zip(batch, embeddings, strict=True)
            ]
            self._store.write(points, version)
        self._record(document, version)
        return self._swept(document) == version

    def delete(self, document: DocumentRef, revision: int) -> bool:
        """Let nothing be found of `document`, unless a revision newer than `revision` is there already (False).

        What is written afterwards under `revision` or an older one stays out.
        """
        version = 2 * revision + 1
        self._record(document, version)
        return self._swept(document) == version

    def forget(self, document: DocumentRef) -> None:
        """Keep nothing of `document`, its revision included: for what was never there, or is no more."""
        self._store.erase(scope_of(document))

    def delete_collection(self, tenant_id: str, collection: str) -> None:
        """Forget everything of a collection."""
        self._store.erase(Scope(tenant_id, (collection,)))

    def delete_tenant(self, tenant_id: str) -> None:
        """Forget everything of a tenant."""
        self._store.erase(Scope(tenant_id))

    def revision(self, document: DocumentRef) -> int:
        """The revision at which `document` was last replaced or deleted here; 0 where it never was."""
        return self._version(document) // 2

    def holds(self, document: DocumentRef, revision: int) -> bool:
        """Whether what is found of `document` is of `revision` or a newer one, and it is not deleted."""
        version = self._version(document)
        return version >= 2 * revision and version % 2 == 0

    def count(self, tenant_id: str, collection: str | None = None) -> int:
        """How many passages a tenant, or one of its collections, has."""
        collections = None if collection is None else (collection,)
        return self._store.count(Scope(tenant_id, collections, kind="passage"))

    def documents(self, tenant_id: str = "") -> set[Scope]:
        """The documents that the index knows: a tenant's, or everybody's."""
        return self._store.documents(tenant_id)

    def erase(self, scope: Scope) -> None:
        """Forget everything of `scope`."""
        self._store.erase(scope)

    def search(
        self, question: SearchQuestion, told: Callable[[Iterable[Passage]], None] = lambda _: None
    ) -> list[SearchHit]:
        """The passages that answer `question` best, best first; `told` hears early of all that may be among them."""
        return self._retriever.rank(question, told=told).hits

    def rank(self, question: SearchQuestion, until: float = math.inf) -> Ranking:
        """What `search` gives, and how it was found; no closer look at the best is waited for after `until`."""
        return self._retriever.rank(question, until)

    def close(self) -> None:
        """Let go of the store; whatever was written is kept, and who is still writing is told to come again."""
        self._is_closed = True
        self._store.close()

    def _require_open(self) -> None:
        if self._is_closed:
            raise Unavailable(_CLOSED)

    def _version(self, document: DocumentRef) -> int:
        self._require_open()
        record = self._store.read([document.id]).get(document.id)
        return int(record["version"]) if record else 0

    def _record(self, document: DocumentRef, version: int) -> None:
        self._store.write([Point(document.id, _filtered(document, "document", version))], version)

    def _swept(self, document: DocumentRef) -> int:
        """Forget what is older than the document's record; its version."""
        version = self._version(document)
        self._store.erase(
            Scope(document.tenant_id, (document.collection,), document.id, kind="passage", before=version)
        )
        return version


def scope_of(document: DocumentRef) -> Scope:
    """The points of a document."""
    return Scope(document.tenant_id, (document.collection,), document.id)


def knowledge_index() -> PassageIndex:
    """The index that the settings name; one a process, for the embedded store belongs to one."""
    with _opening:  # two first callers must not open it twice
        return _opened()


def close_index() -> None:
    """Let go of this process's index for good: of one that is being opened, once it is, and none is opened after it."""
    _closing.set()
    with _opening:
        if _opened.cache_info().currsize:
            _opened().close()


@cache
def _opened() -> PassageIndex:
    if _closing.is_set():
        raise Unavailable(_CLOSED)
    chosen = embedder()
    store = vector_store(chosen.space)
    parts = config().reranker == "late-interaction" and chosen.space.tokens
    return PassageIndex(chosen, store, HybridSearch(chosen, store, parts=parts, reranker=reranker()))


def _filtered(document: DocumentRef, kind: str, version: int) -> dict[str, Any]:
    return {
        "tenant": document.tenant_id,
        "collection": document.collection,
        "document": document.id,
        "kind": kind,
        "version": version,
    }


def _payload(passage: Passage, version: int) -> dict[str, Any]:
    return _filtered(passage.document, "passage", version) | {"tags": list(passage.tags), "passage": passage.record()}
