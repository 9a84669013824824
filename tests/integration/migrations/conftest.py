"""Tables as a revision without formats has left them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from shared.aws.dynamodb import Keys, Table
from shared.documents import keys
from shared.migrations.formats import FORMAT_KEY, TABLES, table_name
from shared.platform.config import config
from tests.helpers.dynamodb import empty_documents

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.helpers.document_agent import DocumentAgent


@pytest.fixture(autouse=True)
def _no_formats(store: str) -> Iterator[None]:
    """Begin with tables without formats and without documents. Leave none behind for other tests."""

    def forget() -> None:
        for table in TABLES:
            Table(table_name(table)).delete_all([FORMAT_KEY])

    forget()
    empty_documents(store)
    yield
    forget()


@pytest.fixture
def deleted(agent: DocumentAgent) -> list[str]:
    """Delete documents as a revision without the bin did. Return their ids."""
    ids = [f"deleted-{number}" for number in range(6)]
    for document_id in (*ids, "alive"):
        agent.create(document_id)
    for document_id in ids:
        agent("delete_document", document_id=document_id)
    Table(config().documents_table).delete_range(keys.deleted_documents(agent.tenant), Keys.after(" "))
    return ids
