"""Synchronisation of documents whose files are unreadable or have invalid names."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any

import pytest

from infra.clients.agent.files.reader import FileReader
from infra.clients.agent.files.roots import Roots
from shared.aws.dynamodb import Table
from shared.knowledge.collections import CollectionStore
from shared.knowledge.documents import CollectionDocuments
from shared.knowledge.folder_sync import sync_folder
from shared.knowledge.ingestion import DocumentIngestion
from shared.knowledge.models import DocumentFailure, IngestionTally
from shared.knowledge.recorded_space import recorded_space
from shared.platform.config import config
from tests.helpers.memory_index import MemoryIndex

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def follow(tenant: str, tmp_path: Path) -> Callable[[], tuple[IngestionTally, list[str]]]:
    """Return a function that ingests the folder, and returns the tally and the stored documents."""
    table = Table(config().knowledge_table)
    collection = CollectionStore(table, tenant).create("notes", "fundamental", recorded_space())
    documents = CollectionDocuments(table, tenant, collection, MemoryIndex())

    def ingested() -> tuple[IngestionTally, list[str]]:
        ingestion = DocumentIngestion(documents)
        sync_folder(documents, ingestion, FileReader(Roots([tmp_path])).find(".", recursive=True))
        return ingestion.tally, [each.path for each in documents.page(10)[0]]

    return ingested


def test_temporarily_unreadable_file_keeps_its_document(
    follow: Callable[[], tuple[IngestionTally, list[str]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.md").write_text("# A")
    (tmp_path / "b.md").write_text("# B")
    assert follow()[1] == ["a.md", "b.md"]
    opened = os.open

    def denied(path: Any, *arguments: Any, **more: Any) -> int:
        if path == "a.md":
            raise OSError(errno.EIO, "Input/output error")
        return opened(path, *arguments, **more)

    monkeypatch.setattr(os, "open", denied)
    (tmp_path / "b.md").write_bytes(b"\0")
    tally, stored = follow()
    reasons = [DocumentFailure(each.path, each.reason) for each in tally.failed]
    assert reasons == [
        DocumentFailure("a.md", "cannot be read: Input/output error"),
        DocumentFailure("b.md", "is not text"),
    ]
    assert (tally.removed, stored) == (1, ["a.md"])


def test_too_long_file_name_does_not_block_others(
    follow: Callable[[], tuple[IngestionTally, list[str]]], tmp_path: Path
) -> None:
    folder = tmp_path.joinpath(*(letter * 200 for letter in "abcdefg"))
    folder.mkdir(parents=True)
    (folder / "deep.md").write_text("# Deep")
    (tmp_path / "z.md").write_text("# Z")
    tally, stored = follow()
    (failure,) = tally.failed
    assert failure.reason.endswith("has a path of more than 900 bytes")
    assert stored == ["z.md"]
