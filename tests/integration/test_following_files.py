"""What becomes of documents whose files cannot be looked at, or have names that no document can have."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any

import pytest

from infra.reading.reader import FileReader
from infra.reading.roots import Roots
from shared.config import config
from shared.dynamodb import Table
from shared.knowledge.collections import Collections
from shared.knowledge.documents import Documents
from shared.knowledge.ingesting import Ingestion
from shared.knowledge.models import Failure, Tally
from shared.knowledge.space import current_space
from tests.passages import MemoryIndex

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def follow(tenant: str, tmp_path: Path) -> Callable[[], tuple[Tally, list[str]]]:
    """Ingest the folder; what became of it, and what is held then."""
    table = Table(config().knowledge_table)
    collection = Collections(table, tenant).create("notes", "fundamental", current_space())
    documents = Documents(table, tenant, collection, MemoryIndex())

    def ingested() -> tuple[Tally, list[str]]:
        ingestion = Ingestion(documents)
        ingestion.follow(FileReader(Roots([tmp_path])).find(".", recursive=True))
        return ingestion.tally, [each.path for each in documents.page(10)[0]]

    return ingested


def test_who_may_not_read_a_file_for_a_moment_loses_no_document(
    follow: Callable[[], tuple[Tally, list[str]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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
    tally, held = follow()
    reasons = [Failure(each.path, each.reason) for each in tally.failed]
    assert reasons == [Failure("a.md", "cannot be read: Input/output error"), Failure("b.md", "is not text")]
    assert (tally.removed, held) == (1, ["a.md"])


def test_a_name_too_long_for_a_document_keeps_no_others_out(
    follow: Callable[[], tuple[Tally, list[str]]], tmp_path: Path
) -> None:
    folder = tmp_path.joinpath(*(letter * 200 for letter in "abcdefg"))
    folder.mkdir(parents=True)
    (folder / "deep.md").write_text("# Deep")
    (tmp_path / "z.md").write_text("# Z")
    tally, held = follow()
    (failure,) = tally.failed
    assert failure.reason.endswith("has a path of more than 900 bytes")
    assert held == ["z.md"]
