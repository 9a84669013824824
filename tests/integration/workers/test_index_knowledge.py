"""The worker for documents of collections that wait to be indexed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from infra.local import streams
from shared.aws.dynamodb import Table, Write
from shared.knowledge import keys
from shared.knowledge.collections import CollectionStore
from shared.knowledge.documents import CollectionDocuments
from shared.knowledge.models import NewKnowledgeDocument
from shared.knowledge.recorded_space import recorded_space
from shared.platform.config import config
from shared.search.index import knowledge_index
from tests.helpers.memory_index import MemoryIndex
from tests.helpers.stream_deliveries import deliver, letters_of, running_worker, stream_record
from tests.helpers.wait import until
from workers import index_knowledge

if TYPE_CHECKING:
    from pathlib import Path

    from shared.knowledge.models import Collection, StoredDocument


@pytest.fixture
def collection(tenant: str) -> Collection:
    return CollectionStore(Table(config().knowledge_table), tenant).create("notes", "fundamental", recorded_space())


def table() -> Table:
    return Table(config().knowledge_table)


def put_without_index(tenant: str, collection: Collection, path: str, text: str) -> None:
    """Store a document while the index is down."""
    index = MemoryIndex()
    index.down = True
    assert CollectionDocuments(table(), tenant, collection, index).put(NewKnowledgeDocument(path, text)).pending


def find(tenant: str, collection: Collection, path: str) -> StoredDocument | None:
    return CollectionDocuments(table(), tenant, collection, knowledge_index()).find(path)


def is_indexed(tenant: str, collection: Collection, path: str) -> bool:
    stored = find(tenant, collection, path)
    return bool(stored and stored.indexed)


def test_document_that_was_given_up_is_indexed_at_its_next_change(
    tenant: str, collection: Collection, store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A document that is given up holds back no other document and no later revision of itself."""
    monkeypatch.setattr(streams, "_RETRY_SECONDS", 0.01)
    put_without_index(tenant, collection, "poison.md", "Ferns.")
    damaged = {"pk": keys.partition(tenant, "documents", collection.id), "sk": "poison.md"}
    table().write(Write("Update", damaged, "REMOVE origin"))
    put_without_index(tenant, collection, "sound.md", "Moss.")
    with running_worker("workers-index_knowledge", tenant, store, tmp_path):
        until(lambda: is_indexed(tenant, collection, "sound.md"))
        assert [(each.method, each.code) for each in letters_of(tenant)] == [
            ("workers/index_knowledge", "INTERNAL_ERROR")
        ]
        put_without_index(tenant, collection, "poison.md", "Ferns and herbs.")
        until(lambda: is_indexed(tenant, collection, "poison.md"))
    assert len(letters_of(tenant)) == 1


def test_revision_that_is_queued_while_another_one_is_indexed_is_indexed_too(
    tenant: str, collection: Collection, store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another writer queues the document just before the worker removes it from the queue."""
    put_without_index(tenant, collection, "a.md", "Ferns.")
    reindex = CollectionDocuments.reindex

    def overtaken(self: CollectionDocuments, path: str, **options: Any) -> bool:
        is_changed = reindex(self, path, **options)
        monkeypatch.setattr(CollectionDocuments, "reindex", reindex)
        put_without_index(tenant, collection, "a.md", "Ferns and herbs.")
        return is_changed

    monkeypatch.setattr(CollectionDocuments, "reindex", overtaken)
    with running_worker("workers-index_knowledge", tenant, store, tmp_path):
        until(lambda: (stored := find(tenant, collection, "a.md")) and stored.revision == 2 and stored.indexed)
        until(lambda: not list(table().get_all([(f"{tenant}#work", keys.awaiting_index(collection.id, "a.md"))])))


def test_queue_item_of_a_deleted_collection_is_removed(tenant: str, collection: Collection) -> None:
    put_without_index(tenant, collection, "a.md", "Ferns.")
    CollectionStore(table(), tenant).delete("notes")
    sk = keys.awaiting_index(collection.id, "a.md")
    assert deliver(index_knowledge.handler, stream_record(f"{tenant}#work", sk)) == []
    assert table().get(f"{tenant}#work", sk) is None
