"""Search dependencies are imported by the first search, not earlier."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = {"boto3", "numpy", "onnx", "onnxruntime", "qdrant_client", "qdrant_edge"}


@pytest.mark.parametrize(
    ("module", "allowed"),
    [
        ("shared.search.index", set[str]()),
        ("shared.search.embedding.models", set[str]()),
        ("shared.search.store.server", set[str]()),
        ("infra.local.search_engine.embedded", {"qdrant_edge"}),
        ("shared.memory.conversations", set[str]()),
        ("agent_data.create_document", {"boto3"}),
        ("agent_data.query_knowledge", {"boto3"}),
    ],
)
def test_modules_import_only_what_they_use(module: str, allowed: set[str]) -> None:
    program = f"import sys, {module}; print(*sorted({HEAVY - allowed!r} & set(sys.modules)))"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert loaded.stdout.split() == []
