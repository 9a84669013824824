"""The passage index on its real parts: the embedded model, Qdrant's engine, a folder on disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from infra.local.search_engine.embedded import EmbeddedVectorStore
from shared.search.embedding.e5 import E5
from shared.search.embedding.models import E5_SMALL
from shared.search.index import PassageIndex
from shared.search.passages import DocumentRef
from tests.helpers.passages import TEXTS, index_texts

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def e5() -> E5:
    """Load the embedded model once."""
    return E5()


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedVectorStore]:
    """Yield one store for all tests. Each test has its own tenant."""
    opened = EmbeddedVectorStore(E5_SMALL, str(tmp_path_factory.mktemp("index")))
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def index(e5: E5, store: EmbeddedVectorStore) -> PassageIndex:
    """Return the index that tests share."""
    return PassageIndex(e5, store)


@pytest.fixture
def library(index: PassageIndex, tenant: str) -> str:
    """Return a tenant that has TEXTS."""
    for number, text in enumerate(TEXTS):
        index_texts(index, DocumentRef(tenant, "c", str(number)), 1, text)
    return tenant
