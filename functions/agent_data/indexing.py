"""Finding documents: the index proposes passages, the documents as they are now decide.

A passage bears the revision since which what is searched of its document has stayed the same. A move, a display flag
or any other metadata changes the document's revision and not that one, so that nothing has to be indexed anew.
"""

from __future__ import annotations

import json
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from shared.config import config
from shared.documents import moments
from shared.documents.reading import Reading
from shared.dynamodb import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from shared.documents.changes import Head
    from shared.knowledge.passages import Document, Hit, Passage

COLLECTION: Final = "agent-data"
_one_at_a_time: Final = [Lock() for _ in range(64)]
"""By document: whoever comes second in this process finds the work done, and does not do it again."""
_READ_AS: Final[dict[str, Any]] = {"text/markdown": "markdown", "text/plain": "text", "application/json": "code"}


def refresh(
    tenant_id: str,
    document_id: str,
    *,
    anew: bool = False,
    at_most: int | None = None,
    answered: Callable[[], object] = lambda: None,
) -> bool:
    """Let of a document be found what it is now, unless it has more than `at_most` characters; whether it was not.

    What is found of it already is left as it is, unless it is wanted `anew`. `answered` hears of the index's first
    answer.
    """
    from shared.knowledge.index import knowledge_index
    from shared.knowledge.passages import Document

    document = Document(tenant_id, COLLECTION, document_id)
    with _one_at_a_time[hash(document) % len(_one_at_a_time)]:
        reading = _reading(tenant_id)
        head = reading.head(document_id)
        index = knowledge_index()
        if head is None:
            index.forget(document)
        elif head.deleted(moments.now()):
            index.delete(document, head.revision)
        elif anew or not index.holds(document, head.searchable_revision):
            answered()
            body = reading.body(head)
            if at_most is None or len(body) <= at_most:
                return index.replace(document, head.revision, _passages(document, head, body))
    answered()
    return False


def current(tenant_id: str, hits: Sequence[Hit]) -> list[Hit]:
    """Those whose documents are what they were when they were indexed, and not deleted."""
    found = [hit for hit in hits if _is_ours(hit.passage, tenant_id)]
    heads = _reading(tenant_id).heads({hit.passage.document.document_id for hit in found})
    now = moments.now()
    return [
        hit
        for hit in found
        if (head := heads.get(hit.passage.document.document_id))
        and head.searchable_revision == hit.passage.revision
        and not head.deleted(now)
    ]


def _reading(tenant_id: str) -> Reading:
    return Reading(Table(config().documents_table), tenant_id)


def _is_ours(passage: Passage, tenant_id: str) -> bool:
    return (passage.document.tenant_id, passage.document.collection) == (tenant_id, COLLECTION)


def _passages(document: Document, head: Head, body: str) -> list[Passage]:
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
