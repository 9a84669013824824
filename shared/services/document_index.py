"""Finding documents: the index proposes passages, the documents as they are now decide.

A passage bears the revision since which what is searched of its document has stayed the same. A move, a display flag
or any other metadata changes the document's revision and not that one, so that nothing has to be indexed anew.
"""

from __future__ import annotations

import json
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from shared.config import config
from shared.documents import timestamps
from shared.documents.queries import DocumentQueries
from shared.dynamodb import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from shared.documents.unit_of_work import DocumentHead
    from shared.knowledge.passages import DocumentRef, Passage, SearchHit

COLLECTION: Final = "agent-data"
_one_at_a_time: Final = [Lock() for _ in range(64)]
"""By document: whoever comes second in this process finds the work done, and does not do it again."""
_READ_AS: Final[dict[str, Any]] = {"text/markdown": "markdown", "text/plain": "text", "application/json": "code"}


def refresh_document(
    tenant_id: str,
    document_id: str,
    *,
    force: bool = False,
    at_most: int | None = None,
    on_response: Callable[[], object] = lambda: None,
) -> bool:
    """Let of a document be found what it is now, unless it has more than `at_most` characters; whether it was not.

    What is found of it already is left as it is, unless it is wanted `anew`. `answered` hears of the index's first
    answer.
    """
    from shared.knowledge.index import knowledge_index
    from shared.knowledge.passages import DocumentRef

    document = DocumentRef(tenant_id, COLLECTION, document_id)
    with _one_at_a_time[hash(document) % len(_one_at_a_time)]:
        reading = _document_queries(tenant_id)
        head = reading.head(document_id)
        index = knowledge_index()
        if head is None:
            index.forget(document)
        elif head.deleted(timestamps.now()):
            index.delete(document, head.revision)
        elif force or not index.holds(document, head.searchable_revision):
            on_response()
            body = reading.body(head)
            if at_most is None or len(body) <= at_most:
                return index.replace(document, head.revision, _passages(document, head, body))
    on_response()
    return False


def drop_stale_hits(tenant_id: str, hits: Sequence[SearchHit]) -> list[SearchHit]:
    """Those whose documents are what they were when they were indexed, and not deleted."""
    found = [hit for hit in hits if _is_own_passage(hit.passage, tenant_id)]
    heads = _document_queries(tenant_id).heads({hit.passage.document.document_id for hit in found})
    now = timestamps.now()
    return [
        hit
        for hit in found
        if (head := heads.get(hit.passage.document.document_id))
        and head.searchable_revision == hit.passage.revision
        and not head.deleted(now)
    ]


def _document_queries(tenant_id: str) -> DocumentQueries:
    return DocumentQueries(Table(config().documents_table), tenant_id)


def _is_own_passage(passage: Passage, tenant_id: str) -> bool:
    return (passage.document.tenant_id, passage.document.collection) == (tenant_id, COLLECTION)


def _passages(document: DocumentRef, head: DocumentHead, body: str) -> list[Passage]:
    from shared.knowledge.passages import Passage
    from shared.knowledge.splitting import split

    metadata = json.loads(head.metadata)
    parts = split("", body, read_as=_READ_AS[head.mime_type])
    return [
        Passage(
            document=document,
            ordinal=ordinal,
            text=chunk.text,
            revision=head.searchable_revision,
            title=metadata.get("title") or parts.title,
            source=document.document_id,
            heading_path=chunk.heading_path,
            content_type=chunk.content_type,
            tags=tuple(metadata.get("tags", ())),
        )
        for ordinal, chunk in enumerate(parts.chunks)
    ]
