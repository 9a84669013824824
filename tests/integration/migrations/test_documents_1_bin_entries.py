"""Documents that were deleted before the bin existed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shared.aws.dynamodb import Keys, Table
from shared.documents import keys
from shared.migrations.runner import migrate
from shared.platform.config import config
from tests.helpers.document_agent import assert_consistent_tree
from tests.helpers.interference import another_caller

if TYPE_CHECKING:
    from tests.helpers.document_agent import DocumentAgent


def listed(agent: DocumentAgent) -> list[str]:
    return sorted(each["document_id"] for each in agent.pages("list_deleted", "documents", 100))


def test_documents_of_an_earlier_bin_are_listed_and_can_be_restored(agent: DocumentAgent, deleted: list[str]) -> None:
    """After the migration, `list_deleted` has every deleted document, and restoring one removes it again."""
    assert listed(agent) == []
    assert migrate()["documents"] == len(deleted)
    assert listed(agent) == deleted
    agent("restore_document", document_id=deleted[0])
    assert listed(agent) == deleted[1:]
    assert_consistent_tree(agent.tenant)


def test_entries_that_exist_are_not_written_again(agent: DocumentAgent, deleted: list[str]) -> None:
    """A document that the bin has already, and a scheduled deletion, are entered once."""
    agent("delete_document", document_id="alive", delete_at="2999-01-01T00:00:00Z")
    assert migrate()["documents"] == len(deleted)
    assert_consistent_tree(agent.tenant)


def test_document_that_is_restored_meanwhile_gets_no_entry(agent: DocumentAgent, deleted: list[str]) -> None:
    """A restoration between the migration's read and its write leaves nothing in the bin."""

    def restore() -> None:
        for document_id in deleted:
            agent("restore_document", document_id=document_id)

    # The first batch has the formats, the second the entries that exist.
    with another_caller(restore, before="BatchGetItem", at=2):
        assert migrate()["documents"] == 0
    table = Table(config().documents_table)
    assert table.count(keys.deleted_documents(agent.tenant), Keys.after(" ")) == 0
    assert_consistent_tree(agent.tenant)
