"""Indexing of agent-data's documents, and the check of hits against the current documents.

A passage carries the revision since which the document's searchable content is unchanged. A move, a display flag or
other metadata changes the document's revision but not that one, so nothing is embedded. The metadata by which passages
are filtered is changed in place.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from shared.aws.dynamodb import Table
from shared.documents.deletion import PURGE_DELAY_SECONDS
from shared.documents.metadata_filter import all_pairs, matches
from shared.documents.queries import DocumentQueries
from shared.platform.config import config
from shared.platform.locks import NamedLocks
from shared.rpc import timestamps

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from shared.documents.unit_of_work import DocumentHead
    from shared.search.index import Metadata
    from shared.search.passages import DocumentRef, Passage, SearchHit

COLLECTION: Final = "agent-data"
_locks: Final[NamedLocks[DocumentRef]] = NamedLocks()
"""The locks of the documents that are being indexed: a second thread of this process finds the work done."""
_READ_AS: Final[dict[str, Any]] = {"text/markdown": "markdown", "text/plain": "text", "application/json": "code"}


def refresh_document(
    tenant_id: str,
    document_id: str,
    *,
    force: bool = False,
    max_characters: int | None = None,
    on_response: Callable[[], object] = lambda: None,
) -> bool:
    """Bring the index up to date with the document, skipping bodies longer than `max_characters`.

    Return True if the document was indexed. An up-to-date document is indexed only with `force`. `on_response` is
    called at the index's first response.
    """
    from shared.search.index import knowledge_index
    from shared.search.passages import DocumentRef

    document = DocumentRef(tenant_id, COLLECTION, document_id)
    queries, lock = _document_queries(tenant_id), _locks.of(document)
    if max_characters is not None and lock.locked() and _is_longer(queries, document_id, max_characters):
        on_response()
        return False  # a writer does not wait for a worker to end with an earlier revision
    with lock:
        head = queries.head(document_id)
        index = knowledge_index()
        if head is None:
            index.forget(document)
        elif head.deleted(now := timestamps.now()):
            # Until then, `drop_stale_hits` hides it.
            if head.deleted(now - PURGE_DELAY_SECONDS * 1_000_000):
                index.delete(document, head.revision)
        elif force or not index.holds(document, head.searchable_revision):
            on_response()
            body = queries.body(head)
            if max_characters is None or len(body) <= max_characters:
                passages, metadata = _passages(document, head, body), _metadata(head)
                is_newest = index.replace(document, head.revision, passages, resume=not force, metadata=metadata)
                if force and (later := queries.head(document_id)):
                    index.set_metadata(document, _metadata(later))  # passages at the same version were written again
                return is_newest
        elif index.metadata(document) not in (None, list(_metadata(head).values)):
            index.set_metadata(document, _metadata(head))
    on_response()
    return False


def drop_stale_hits(
    tenant_id: str, hits: Sequence[SearchHit], metadata: Mapping[str, Any] | None = None
) -> list[SearchHit]:
    """Return the hits whose documents still exist, are unchanged since they were indexed, and have this metadata."""
    own = tenant_id, COLLECTION
    own_hits = [hit for hit in hits if (hit.passage.document.tenant_id, hit.passage.document.collection) == own]
    heads = _document_queries(tenant_id).heads({hit.passage.document.document_id for hit in own_hits})
    now = timestamps.now()
    return [
        hit
        for hit in own_hits
        if (head := heads.get(hit.passage.document.document_id))
        and head.searchable_revision == hit.passage.revision
        and not head.deleted(now)
        and (not metadata or matches(json.loads(head.metadata), metadata))
    ]


def _is_longer(queries: DocumentQueries, document_id: str, characters: int) -> bool:
    head = queries.head(document_id)
    return head is not None and len(queries.body(head)) > characters


def _document_queries(tenant_id: str) -> DocumentQueries:
    return DocumentQueries(Table(config().documents_table), tenant_id)


def _metadata(head: DocumentHead) -> Metadata:
    from shared.search.index import Metadata

    return Metadata(all_pairs(json.loads(head.metadata)), head.revision)


def _passages(document: DocumentRef, head: DocumentHead, body: str) -> list[Passage]:
    from shared.search.splitting import split

    metadata = json.loads(head.metadata)
    parts = split("", body, read_as=_READ_AS[head.mime_type])
    title = metadata.get("title") or parts.title
    return parts.passages(document, head.searchable_revision, title, tuple(metadata.get("tags", ())))
