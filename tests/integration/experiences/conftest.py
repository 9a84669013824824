"""Experiences through their functions, on the real store and the real index."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from infra.local.search_engine.embedded import EmbeddedVectorStore
from shared.experiences import index as experience_index
from shared.search.embedding.e5 import E5
from shared.search.embedding.models import E5_SMALL
from shared.search.exhaustive_search import ExhaustiveSearch

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def shelves(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedVectorStore]:
    """Yield the vector store of the tests' indexes."""
    opened = EmbeddedVectorStore(replace(E5_SMALL, tokens=False), str(tmp_path_factory.mktemp("shelves")))
    yield opened
    opened.close()


@pytest.fixture(autouse=True)
def _shelf(shelves: EmbeddedVectorStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the test its own collection, as all callers share experiences."""
    own = ExhaustiveSearch(E5(), shelves, uuid4().hex)
    monkeypatch.setattr(experience_index, "_search_index", lambda: own)
