"""Documents in the store."""

from __future__ import annotations

import pytest

from tests.helpers.dynamodb import empty_documents


@pytest.fixture(scope="module", autouse=True)
def _empty_table(store: str) -> None:
    """Empty the table of documents. Many tests read all of it, some again and again."""
    empty_documents(store)
