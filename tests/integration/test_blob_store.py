"""Large texts, cut into parts in the real store."""

from __future__ import annotations

import random

from shared.aws.blob_store import BlobStore, compress
from shared.aws.dynamodb import Keys, Table
from shared.platform.config import config


def test_a_blob_is_read_from_its_parts_and_deleted_with_them(tenant: str) -> None:
    table = Table(config().knowledge_table)
    blobs = BlobStore(table, lambda path, name: (f"{tenant}#texts#c", f"{path}#{name}#"), digits=4)
    text = random.Random(1).randbytes(500_000).hex()
    blobs.write(compress(text), "a.md", "1")
    blobs.write(compress("kept"), "a.md", "12")
    parts = [item for page in table.query(f"{tenant}#texts#c", Keys.beginning("a.md#1#")) for item in page]
    assert [item["sk"] for item in parts] == ["a.md#1#0000", "a.md#1#0001"]
    assert blobs.read("a.md", "1") == text
    blobs.delete("a.md", "1")
    assert blobs.read("a.md", "1") is None
    assert blobs.read("a.md", "12") == "kept"
