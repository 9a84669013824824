"""Files that a caller has sent as they are: read within the request, or by a worker if that takes long."""

from __future__ import annotations

import threading
from contextlib import nullcontext
from typing import TYPE_CHECKING, Final

from shared.knowledge.file_text import document_of, is_pdf

if TYPE_CHECKING:
    from shared.knowledge.documents import CollectionDocuments
    from shared.knowledge.folder_sync import InvalidFile
    from shared.knowledge.models import NewKnowledgeDocument, SkippedFile, StoredDocument, UploadedFile

_READERS: Final = threading.BoundedSemaphore(2)
"""On one machine the workers of all tenants are one process: it reads two files at a time, whose memory is bounded."""


def takes_long(file: UploadedFile, documents: CollectionDocuments) -> bool:
    """Return whether the text has to be extracted."""
    return is_pdf(file.path, file.content) and _unchanged(file, documents) is None


def read(
    file: UploadedFile, documents: CollectionDocuments
) -> StoredDocument | NewKnowledgeDocument | InvalidFile | SkippedFile:
    """Return the document, the stored one if the file has not changed, or the reason why it is left out."""
    if stored := _unchanged(file, documents):
        return stored
    with _READERS if is_pdf(file.path, file.content) else nullcontext():
        return document_of(file.path, file.content, hash_=file.hash, title=file.title, tree=file.tree)


def _unchanged(file: UploadedFile, documents: CollectionDocuments) -> StoredDocument | None:
    stored = documents.find(file.path)
    is_current = stored and stored.hash == file.hash and stored.indexed and file.title in ("", stored.title)
    return stored if is_current else None
