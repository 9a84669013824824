"""What the real DynamoDB does and the engine here does not: conflicts of transactions, and batches half done."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from shared.config import config
from shared.dynamodb import ConditionFailed, Keys, Table, Write
from shared.memory.conversations import Conversations
from shared.memory.histories import History
from shared.rpc.errors import Unavailable
from tests.wire import answering, on_the_wire

if TYPE_CHECKING:
    from tests.wire import Refusal


class Conflicting:
    """Answers the first requests as DynamoDB does while another transaction holds the item."""

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
    """Repeat a request at once. How long to pause before is not tested here."""
    monkeypatch.setattr("shared.dynamodb.time", SimpleNamespace(sleep=lambda _: None))


@pytest.fixture
def conversations(tenant: str) -> Conversations:
    return Conversations(Table(config().memory_table), tenant)


def test_a_message_that_meets_a_clearing_waits_it_out(conversations: Conversations) -> None:
    conversations.get_or_create("met")
    conflict = Conflicting(3, SINGLE)
    with on_the_wire(answering("UpdateItem", conflict)):
        conversations.append("met", "user", "x")
    assert conflict.left == 0
    assert [message.content for message in History(conversations, "met").recent(6)] == ["x"]


def test_a_clearing_that_meets_writers_waits_them_out(conversations: Conversations) -> None:
    conversations.append("met", "user", "x")
    conflict = Conflicting(3, CANCELLED)
    with on_the_wire(answering("TransactWriteItems", conflict)):
        conversations.clear("met")
    assert conflict.left == 0
    assert History(conversations, "met").recent(6) == []


@pytest.mark.parametrize(("operation", "said"), [("UpdateItem", SINGLE), ("TransactWriteItems", CANCELLED)])
def test_a_conflict_without_end_is_said_to_be_retryable(
    conversations: Conversations, operation: str, said: dict[str, Any]
) -> None:
    conversations.get_or_create("stuck")
    with on_the_wire(answering(operation, Conflicting(1000, said))), pytest.raises(Unavailable):
        conversations.append("stuck", "user", "x") if operation == "UpdateItem" else conversations.clear("stuck")


@pytest.mark.parametrize("ending", ["clear", "delete"])
def test_an_ending_that_another_overtook_ends_what_came_since(conversations: Conversations, ending: str) -> None:
    """Between reading the generation and ending it, somebody else cleared: theirs is ended, and nothing orphaned."""
    conversations.append("overtaken", "user", "x")
    other = Conversations(conversations.table, conversations.tenant_id)
    overtaken: list[str] = []

    def overtake(_: Any) -> None:
        if not overtaken:
            overtaken.append("now")
            other.clear("overtaken")
            overtaken.append(other.require("overtaken").generation)

    with on_the_wire(answering("TransactWriteItems", overtake)):
        getattr(conversations, ending)("overtaken")
    found = conversations.find("overtaken")
    assert found is None if ending == "delete" else found and found.generation != overtaken[1]
    purged = conversations.table.query(f"{conversations.tenant_id}#purge", Keys.after(" "))
    assert f"purge#{overtaken[1]}" in {item["sk"] for page in purged for item in page}


def test_what_a_busy_partition_leaves_of_a_batch_is_deleted_after_all(tenant: str) -> None:
    table = Table(config().memory_table)
    names = [f"{number:03d}" for number in range(60)]
    for name in names:
        table.write(Write("Put", {"pk": tenant, "sk": name}))
    sent: list[int] = []

    def only_two(params: Any) -> None:
        """Send the store two of what was asked, as though the rest were unprocessed."""
        requests = params["RequestItems"][table.name]
        sent.append(len(requests))
        held.extend(requests[2:])
        params["RequestItems"] = {table.name: requests[:2]}

    def leave(operation: str, answer: Any) -> None:
        if operation == "BatchWriteItem":
            answer["UnprocessedItems"] = {table.name: list(held)} if held else {}
            held.clear()

    held: list[Any] = []
    with on_the_wire(answering("BatchWriteItem", only_two), leave):
        table.delete_all([(tenant, name) for name in names])
    assert len(sent) > 11  # more often than a batch that makes no progress is tried
    assert [item for page in table.query(tenant, Keys.after(" ")) for item in page] == []


def test_every_read_is_consistent(conversations: Conversations) -> None:
    conversations.append("read", "user", "x")
    consistent: list[bool] = []

    def note(operation: str, params: Any) -> None:
        if operation in ("GetItem", "Query"):
            consistent.append(params["ConsistentRead"])

    with on_the_wire(note):
        history = History(conversations, "read")
        history.recent(6)
        history.old(1, None, None, leave_out_summarized=True)
        conversations.listed(10, None)
    assert len(consistent) >= 6
    assert all(consistent)


def test_a_condition_that_does_not_hold_writes_nothing(tenant: str) -> None:
    table = Table(config().memory_table)
    table.write(Write("Put", {"pk": tenant, "sk": "taken"}))
    unless = Write("Put", {"pk": tenant, "sk": "taken", "x": "y"}, condition="attribute_not_exists(pk)")
    with pytest.raises(ConditionFailed):
        table.write(unless)
    with pytest.raises(ConditionFailed) as caught:
        table.transact(Write("Put", {"pk": tenant, "sk": "other"}), unless)
    assert caught.value.failed == (1,)
    assert [item for page in table.query(tenant, Keys.after(" ")) for item in page] == [{"pk": tenant, "sk": "taken"}]
