"""Behaviour of DynamoDB that the local engine lacks: transaction conflicts and partly processed batches."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from shared.aws.dynamodb import ConditionFailed, Keys, Table, Write
from shared.memory.conversations import Conversations
from shared.memory.message_history import MessageHistory
from shared.platform.config import config
from shared.rpc.errors import Unavailable
from tests.helpers.dynamodb_requests import answer_operation, intercept_requests

if TYPE_CHECKING:
    from tests.helpers.dynamodb_requests import Refusal


class Conflicting:
    """A store that answers the first requests as DynamoDB does while another transaction holds the item."""

    def __init__(self, times: int, said: dict[str, Any]) -> None:
        self.left = times
        self._said = said

    def __call__(self, _: Any) -> Refusal | None:
        if self.left == 0:
            return None
        self.left -= 1
        return 400, self._said


SINGLE = {"__type": "com.amazonaws.dynamodb.v20120810#TransactionConflictException", "message": "ongoing"}
CANCELLED = {
    "__type": "com.amazonaws.dynamodb.v20120810#TransactionCanceledException",
    "Message": "cancelled",
    "CancellationReasons": [{"Code": "TransactionConflict"}, {"Code": "None"}],
}


@pytest.fixture(autouse=True)
def _without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retry without a pause. Back-off is not the subject here."""
    monkeypatch.setattr("shared.aws.dynamodb.time", SimpleNamespace(sleep=lambda _: None, monotonic=time.monotonic))


@pytest.fixture
def conversations(tenant: str) -> Conversations:
    return Conversations(Table(config().memory_table), tenant)


def test_add_message_retries_on_conflict_with_clear(conversations: Conversations) -> None:
    conversations.get_or_create("met")
    conflict = Conflicting(3, SINGLE)
    with intercept_requests(answer_operation("UpdateItem", conflict)):
        conversations.append("met", "user", "x")
    assert conflict.left == 0
    assert [message.content for message in MessageHistory(conversations, "met").recent(6)] == ["x"]


@pytest.mark.parametrize("reason", ["TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"])
def test_clear_retries_cancelled_transactions(conversations: Conversations, reason: str) -> None:
    conversations.append("met", "user", "x")
    conflict = Conflicting(3, CANCELLED | {"CancellationReasons": [{"Code": "None"}, {"Code": reason}]})
    with intercept_requests(answer_operation("TransactWriteItems", conflict)):
        conversations.clear("met")
    assert conflict.left == 0
    assert MessageHistory(conversations, "met").recent(6) == []


@pytest.mark.parametrize(("operation", "said"), [("UpdateItem", SINGLE), ("TransactWriteItems", CANCELLED)])
def test_endless_conflict_is_a_retryable_error(
    conversations: Conversations, operation: str, said: dict[str, Any]
) -> None:
    conversations.get_or_create("stuck")
    with intercept_requests(answer_operation(operation, Conflicting(1000, said))), pytest.raises(Unavailable):
        conversations.append("stuck", "user", "x") if operation == "UpdateItem" else conversations.clear("stuck")


@pytest.mark.parametrize("ending", ["clear", "delete"])
def test_overtaken_clear_also_removes_later_messages(conversations: Conversations, ending: str) -> None:
    """If another caller clears between the read of the generation and its end, both generations end without orphans."""
    conversations.append("overtaken", "user", "x")
    other = Conversations(conversations.table, conversations.tenant_id)
    overtaken: list[str] = []

    def overtake(_: Any) -> None:
        if not overtaken:
            overtaken.append("now")
            other.clear("overtaken")
            overtaken.append(other.require("overtaken").generation)

    with intercept_requests(answer_operation("TransactWriteItems", overtake)):
        getattr(conversations, ending)("overtaken")
    conversation = conversations.find("overtaken")
    assert conversation is None if ending == "delete" else conversation and conversation.generation != overtaken[1]
    purged = conversations.table.query(f"{conversations.tenant_id}#purge", Keys.after(" "))
    assert f"purge#{overtaken[1]}" in {item["sk"] for page in purged for item in page}


def test_unprocessed_batch_items_are_retried(tenant: str) -> None:
    table = Table(config().memory_table)
    names = [f"{number:03d}" for number in range(60)]
    for name in names:
        table.write(Write("Put", {"pk": tenant, "sk": name}))
    sent: list[int] = []

    def only_two(params: Any) -> None:
        """Send the store only two of the items, as if the rest were unprocessed."""
        requests = params["RequestItems"][table.name]
        sent.append(len(requests))
        items.extend(requests[2:])
        params["RequestItems"] = {table.name: requests[:2]}

    def leave(operation: str, answer: Any) -> None:
        if operation == "BatchWriteItem":
            answer["UnprocessedItems"] = {table.name: list(items)} if items else {}
            items.clear()

    items: list[Any] = []
    with intercept_requests(answer_operation("BatchWriteItem", only_two), leave):
        table.delete_all([(tenant, name) for name in names])
    assert len(sent) > 11  # more than the attempts for a batch that makes no progress
    assert [item for page in table.query(tenant, Keys.after(" ")) for item in page] == []


def test_every_read_is_consistent(conversations: Conversations) -> None:
    conversations.append("read", "user", "x")
    consistent: list[bool] = []

    def note(operation: str, params: Any) -> None:
        if operation in ("GetItem", "Query"):
            consistent.append(params["ConsistentRead"])

    with intercept_requests(note):
        history = MessageHistory(conversations, "read")
        history.recent(6)
        history.old(1, None, None, leave_out_summarized=True)
        conversations.list_ids(10, None)
    assert len(consistent) >= 5
    assert all(consistent)


def test_failed_condition_writes_nothing(tenant: str) -> None:
    table = Table(config().memory_table)
    table.write(Write("Put", {"pk": tenant, "sk": "taken"}))
    unless = Write("Put", {"pk": tenant, "sk": "taken", "x": "y"}, condition="attribute_not_exists(pk)")
    with pytest.raises(ConditionFailed):
        table.write(unless)
    with pytest.raises(ConditionFailed) as caught:
        table.transact(Write("Put", {"pk": tenant, "sk": "other"}), unless)
    assert caught.value.failed == (1,)
    assert [item for page in table.query(tenant, Keys.after(" ")) for item in page] == [{"pk": tenant, "sk": "taken"}]
