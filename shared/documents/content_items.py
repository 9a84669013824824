"""Content items: the text, metadata and display flag of a document as of a revision."""

from __future__ import annotations

import hashlib
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final

from shared.aws.blob_store import BlobStore, compress
from shared.documents import keys

if TYPE_CHECKING:
    from collections.abc import Callable

    from shared.aws.dynamodb import Item
    from shared.documents.unit_of_work import DocumentHead, UnitOfWork

_INLINE_BYTES: Final = 64 * 1024
"""A larger body would burden a transaction, which costs twice, and one partition."""


def deferred_body(work: UnitOfWork, text: str) -> Callable[[], dict[str, Any]]:
    """Return a function that stores a body on its first call, so that a rejected write stores nothing.

    It returns the attributes with which an item holds the body. A large body is written as a blob first.
    """

    @cache
    def store() -> dict[str, Any]:
        blob = compress(text)
        if len(blob) <= _INLINE_BYTES:
            return {"body": blob}
        # The blob is named by its content, so it needs no clean-up: a repeated write finds its own.
        digest = hashlib.sha256(blob).hexdigest()
        BlobStore(work.table, partial(keys.body, work.tenant_id), keys.PART_DIGITS).write(blob, digest)
        return {"body_digest": digest}

    return store


def content_item(work: UnitOfWork, head: DocumentHead) -> Item:
    """Return the content item of a revision, without the text."""
    return {
        "pk": keys.document(work.tenant_id, head.document_id),
        "sk": keys.content(head.revision),
        "mime_type": head.mime_type,
        "metadata": head.metadata,
        "is_human_readable": head.is_human_readable,
    }


def stored_body(content: Item) -> dict[str, Any]:
    """Return the attributes that hold the text of a content item."""
    return {name: content[name] for name in ("body", "body_digest") if name in content}
