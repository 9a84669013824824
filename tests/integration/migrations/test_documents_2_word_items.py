"""Documents that were written before their words were listed."""

from __future__ import annotations

import pytest

from shared.aws.dynamodb import Keys, Table, Write
from shared.migrations.formats import FORMAT_KEY
from shared.migrations.runner import migrate
from shared.platform.config import config
from tests.helpers.document_agent import DocumentAgent, assert_consistent_tree, stored_items
from tests.helpers.interference import another_caller


@pytest.fixture
def unlisted(agent: DocumentAgent) -> dict[str, str]:
    """Return titles of documents in a table of the format before, by id."""
    titles = {f"doc-{number}": f"Garden {number}" for number in range(20)}
    for document_id, title in titles.items():
        agent.create(document_id, metadata={"title": title})
    agent("delete_document", document_id="doc-19")
    table = Table(config().documents_table)
    for partition in stored_items(agent.tenant):
        if partition.startswith("words#"):
            table.delete_range(f"{agent.tenant}#{partition}", Keys.after(" "))
    pk, sk = FORMAT_KEY
    table.write(Write("Put", {"pk": pk, "sk": sk, "format": 1}))
    return titles


def found(agent: DocumentAgent, query: str = "garden") -> list[str]:
    return sorted(each["document_id"] for each in agent.pages("find_documents", "documents", 7, query=query))


def test_earlier_documents_are_found(agent: DocumentAgent, unlisted: dict[str, str]) -> None:
    """After the migration `find_documents` has every document. Repeating it writes nothing."""
    assert found(agent) == []
    assert migrate()["documents"] == 3 * len(unlisted), "garden, doc and the number"
    assert found(agent) == sorted(unlisted.keys() - {"doc-19"})
    assert_consistent_tree(agent.tenant)
    pk, sk = FORMAT_KEY
    Table(config().documents_table).write(Write("Put", {"pk": pk, "sk": sk, "format": 1}))
    assert migrate()["documents"] == 0


@pytest.mark.usefixtures("unlisted")
def test_document_that_is_renamed_meanwhile(agent: DocumentAgent) -> None:
    """A rename between the migration's read and its write is found, and the title of before is not."""

    def rename() -> None:
        agent("update_document", document_id="doc-3", patch={"metadata": {"title": "Moss"}})
        agent("update_document", document_id="doc-4", patch={"content": {"body": "y"}})

    # The first batch has the formats, the second the words that exist.
    with another_caller(rename, before="BatchGetItem", at=2):
        migrate()
    assert found(agent, "moss") == ["doc-3"]
    assert "doc-3" not in found(agent)
    assert "doc-4" in found(agent)
    assert_consistent_tree(agent.tenant)
