"""The worker for the documents' stream: late, repeated and failing deliveries, and scheduled deletions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from infra.local.streams import matches_filter
from infra.local.template import load
from shared.documents import index as document_index
from shared.documents import keys
from shared.documents.index import COLLECTION, drop_stale_hits
from shared.rpc import timestamps
from shared.rpc.errors import NotFound, Unavailable
from shared.search.index import knowledge_index
from shared.search.passages import SearchQuestion
from tests.helpers.document_agent import expect_error, stored_items
from workers import index_documents

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.helpers.document_agent import DocumentAgent

FERNS = "Ferns are watered at dawn."
FILTERS = next(each.filters for each in load().streams if each.function == "workers-index_documents")


def record(tenant: str, document_id: str, sk: str = "document", event: str = "MODIFY", number: int = 1) -> Any:
    keyed = {"pk": {"S": keys.document(tenant, document_id)}, "sk": {"S": sk}}
    record = {"eventID": str(number), "eventName": event, "dynamodb": {"Keys": keyed, "SequenceNumber": str(number)}}
    assert any(matches_filter(each, record) for each in FILTERS), "the template lets it through"
    return record


def run_worker(*records: Any) -> list[str]:
    """Run the worker on the records and return the numbers of the failed ones."""
    answer = index_documents.handler({"Records": list(records)}, None)
    return [each["itemIdentifier"] for each in answer["batchItemFailures"]]


def indexed_ids(tenant: str) -> set[str]:
    hits = drop_stale_hits(
        tenant, knowledge_index().search(SearchQuestion("watering ferns", tenant, (COLLECTION,), 20)).hits
    )
    return {hit.passage.document.document_id for hit in hits}


def test_documents_written_without_index_are_indexed(agent: DocumentAgent) -> None:
    agent.create("a", body=FERNS)
    assert indexed_ids(agent.tenant) == set()
    assert run_worker(record(agent.tenant, "a", event="INSERT")) == []
    assert indexed_ids(agent.tenant) == {"a"}


def test_late_and_repeated_deliveries_are_idempotent(agent: DocumentAgent) -> None:
    agent.create("a", body=FERNS)
    agent("delete_document", document_id="a")
    created, deleted = record(agent.tenant, "a", event="INSERT"), record(agent.tenant, "a", number=2)
    assert run_worker(deleted, created, created, deleted) == []
    assert (indexed_ids(agent.tenant), knowledge_index().count(agent.tenant)) == (set(), 0)
    agent("restore_document", document_id="a")
    assert run_worker(deleted, record(agent.tenant, "a", number=3), created) == []
    assert (indexed_ids(agent.tenant), knowledge_index().count(agent.tenant)) == ({"a"}, 1)


def test_only_failed_records_are_retried(agent: DocumentAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b", "c"):
        agent.create(name, body=FERNS)
    real = document_index.refresh_document

    def refresh(tenant_id: str, document_id: str) -> bool:
        if document_id == "b":
            raise Unavailable
        return real(tenant_id, document_id)

    monkeypatch.setattr(index_documents, "refresh_document", refresh)
    records = [record(agent.tenant, name, number=number) for number, name in enumerate("abc", start=1)]
    assert run_worker(*records) == ["2"]
    assert indexed_ids(agent.tenant) == {"a", "c"}
    monkeypatch.setattr(index_documents, "refresh_document", real)
    assert run_worker(*records[1:]) == []
    assert indexed_ids(agent.tenant) == {"a", "b", "c"}


def test_document_is_removed_from_the_index_a_week_after_its_deletion_time(
    agent: DocumentAgent, clock: Callable[..., None]
) -> None:
    agent.create("a", body=FERNS)
    agent.create("b", body=FERNS)
    agent("delete_document", document_id="a", delete_at="2999-01-01T00:00:00Z")
    assert run_worker(record(agent.tenant, "a"), record(agent.tenant, "b")) == []
    assert knowledge_index().count(agent.tenant) == 2
    reminder = stored_items(agent.tenant)["document#a"]["deletion"]
    assert reminder["expires_at"] == 32_472_144_000 + 7 * 86_400 + 60, "and a minute, in seconds since 1970"
    assert "deletion" not in stored_items(agent.tenant)["document#b"]
    clock(days=366 * 1000)
    assert indexed_ids(agent.tenant) == {"b"}
    assert run_worker(record(agent.tenant, "a", sk="deletion", event="REMOVE")) == []
    assert knowledge_index().count(agent.tenant) == 1


def test_scheduled_deletion_in_a_clock_that_was_ahead_destroys_nothing(
    agent: DocumentAgent, clock: Callable[..., None]
) -> None:
    """The document is hidden while its time has come, and found again when the clock is right."""
    agent.create("a", body=FERNS)
    agent("delete_document", document_id="a", delete_at=timestamps.to_iso(timestamps.now() + 86_400_000_000))
    assert run_worker(record(agent.tenant, "a")) == []
    clock(days=2)
    assert run_worker(record(agent.tenant, "a", sk="deletion", event="REMOVE", number=2)) == []
    assert indexed_ids(agent.tenant) == set()
    expect_error(NotFound, "NOT_FOUND", agent.get, "a")
    clock(days=-2)
    assert indexed_ids(agent.tenant) == {"a"}
    assert agent.get("a")["delete_at"]
    clock(days=1)
    expect_error(NotFound, "NOT_FOUND", agent.get, "a")


def test_cancelled_deletion_keeps_the_document_indexed(agent: DocumentAgent, clock: Callable[..., None]) -> None:
    agent.create("a", body=FERNS)
    agent("delete_document", document_id="a", delete_at="2999-01-01T00:00:00Z")
    assert run_worker(record(agent.tenant, "a")) == []
    agent("restore_document", document_id="a")
    assert run_worker(record(agent.tenant, "a", number=2)) == []
    clock(days=366 * 1000)
    assert run_worker(record(agent.tenant, "a", sk="deletion", event="REMOVE", number=3)) == []
    assert indexed_ids(agent.tenant) == {"a"}


@pytest.mark.parametrize("sk", ["position", "content#000000000001", "history#000000000001", "deletion"])
def test_auxiliary_items_are_ignored(tenant: str, sk: str) -> None:
    keyed = {"pk": {"S": keys.document(tenant, "a")}, "sk": {"S": sk}}
    assert not any(matches_filter(each, {"eventName": "INSERT", "dynamodb": {"Keys": keyed}}) for each in FILTERS)
