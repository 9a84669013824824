"""Search of messages: true at once, never of what was forgotten, and indexed by the stream's worker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from memory_server import add_message, search
from shared.aws.dynamodb import Keys, Table
from shared.memory import keys
from shared.memory.conversations import Conversations
from shared.platform.config import config
from shared.rpc import timestamps
from shared.rpc.errors import Unavailable
from shared.search import message_index as index_module
from shared.search.message_index import MessageFilter, MessageIndex, MessageQuestion, MessageRef, message_index
from tests.helpers.dynamodb_requests import intercept_requests
from tests.helpers.interference import another_caller
from tests.helpers.size import sized
from tests.helpers.stream_deliveries import deliver, stream_record
from tests.integration.memory.test_forgetting import delete_message, items, say
from workers import index_messages, purge_messages

if TYPE_CHECKING:
    from collections.abc import Callable

CHAT = [
    "Do you play an instrument?",
    "Yes, the violin, since I was nine.",
    "My sister paints watercolours of the harbour.",
    "We moved to Porto in the spring.",
    "The bakery near the station sells almond cake.",
]


@pytest.fixture
def conversations(tenant: str) -> Conversations:
    return Conversations(Table(config().memory_table), tenant)


def ask(tenant: str, function: Any = search, **params: Any) -> Any:
    """Call a method as another client does, and return its result or its error."""
    caller = {"sub": "other", "roles": ["writer"], "tenant_id": tenant}
    call = {"method": "", "params": params, "caller": caller, "correlation_id": "search-test"}
    answer = function.handler(call, None)
    return answer["result"] if "result" in answer else answer["error"]


def texts(answer: Any) -> list[str]:
    return [each["content"] for each in answer["messages"]]


def run_indexer(conversations: Conversations, event: str = "INSERT") -> None:
    """Deliver a record of each message of the tenant, and of each conversation whose fields are queued."""
    stored = items(conversations)
    prefixes = keys.MESSAGE, keys.FIELDS
    records = [
        stream_record(item["pk"], item["sk"], number=number, event=event)
        for number, item in enumerate(stored)
        if item["sk"].startswith(prefixes)
    ]
    assert deliver(index_messages.handler, *records) == []


def marked(conversations: Conversations) -> int:
    return sum("#unindexed#" in item["pk"] for item in items(conversations))


def proposed(conversations: Conversations, text: str, **filters: Any) -> dict[int, float]:
    """Return the numbers and scores of the messages that the index proposes."""
    question = MessageQuestion(text, conversations.tenant_id, MessageFilter(**filters), 50)
    return {hit.ref.number: hit.score for hit in message_index().search(question).hits}


# True at once


def test_message_is_found_before_and_after_it_is_indexed(conversations: Conversations) -> None:
    """The rank and the score are those of the index, whichever messages it has already."""
    say(conversations, "chat", *CHAT)
    before = ask(conversations.tenant_id, query="Who plays the violin?")
    assert texts(before)[0] == CHAT[1]
    assert marked(conversations) == 5
    run_indexer(conversations)
    assert marked(conversations) == 0
    after = ask(conversations.tenant_id, query="Who plays the violin?")
    assert texts(after) == texts(before)
    assert set(before) == set(after) == {"messages"}
    say(conversations, "chat", "I met the violin teacher again.")
    assert "I met the violin teacher again." in texts(ask(conversations.tenant_id, query="Who teaches the violin?"))[:2]


@pytest.mark.stress
@pytest.mark.parametrize("is_embedding", [True, False])
def test_each_acknowledged_message_is_found_by_the_next_search(
    conversations: Conversations,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
    is_embedding: bool,
) -> None:
    """A message is found by the next search of another client while none is indexed, and by words without a model."""
    run_indexer(conversations)
    if not is_embedding:
        refuse_embedding(monkeypatch)
    count = sized(30, full=1000)
    for number in range(count):
        word = f"mark{number:05}z"
        ask(
            conversations.tenant_id,
            add_message,
            conversation_id=f"chat_{number % 7}",
            role="user",
            content=f"Say {word}.",
        )
        answer = ask(conversations.tenant_id, query=f"Who said {word}?")
        assert texts(answer)[0] == f"Say {word}."
        assert ("degraded" in answer) != is_embedding
    record_property(
        "load", f"{count:,} messages, each followed by a search{'' if is_embedding else ' without embedding'}"
    )
    record_property("outcome", "all found")


def refuse_embedding(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> Any:
        raise Unavailable("The embedding function is not answering.")

    embedder = message_index()._embedder
    monkeypatch.setattr(type(embedder), "prepare_question", lambda *_: refuse)
    monkeypatch.setattr(type(embedder), "compare", refuse)


def test_degraded_search_says_so_in_the_language_of_the_question(
    conversations: Conversations, monkeypatch: pytest.MonkeyPatch
) -> None:
    say(conversations, "chat", "Cây dương xỉ cần bao nhiêu nước?")
    refuse_embedding(monkeypatch)
    answer = ask(conversations.tenant_id, query="Cây dương xỉ cần bao nhiêu nước mỗi ngày?")
    assert texts(answer) == ["Cây dương xỉ cần bao nhiêu nước?"]
    assert answer["degraded"] == "Chỉ tìm tin nhắn theo từ, vì không dùng được phép nhúng."


def test_more_messages_than_are_embedded_are_a_list_of_their_own(conversations: Conversations) -> None:
    """The newest are ranked with the others, and older ones by their words."""
    for number in range(40):
        say(conversations, f"chat_{number}", f"The ferns of garden {number} are watered.")
    answer = ask(conversations.tenant_id, query="Which ferns are watered?", limit=50)
    assert len(answer["messages"]) == 24
    assert "The ferns of garden 39 are watered." in texts(answer)
    assert len(answer["not_yet_indexed"]) == 16
    assert not {each["message_id"] for each in answer["not_yet_indexed"]} & {
        each["message_id"] for each in answer["messages"]
    }


def test_without_the_index_what_it_does_not_have_is_found(
    conversations: Conversations, monkeypatch: pytest.MonkeyPatch
) -> None:
    say(conversations, "chat", *CHAT)

    def refuse(*_: Any) -> Any:
        raise Unavailable("The index is not answering.")

    monkeypatch.setattr(MessageIndex, "search", refuse)
    answer = ask(conversations.tenant_id, query="Who plays the violin?")
    assert answer["messages"] == []
    assert answer["not_yet_indexed"][0]["content"] == CHAT[1]
    assert "does not answer" in answer["degraded"]


def test_messages_are_not_searched_where_they_are_not_indexed(
    conversations: Conversations, settings: Callable[..., None]
) -> None:
    """The switch saves the marker and the embedding."""
    settings(KHO_MESSAGE_INDEX="false")
    say(conversations, "chat", *CHAT)
    assert marked(conversations) == 0
    run_indexer(conversations)
    assert message_index().generations(conversations.tenant_id) == set()
    error = ask(conversations.tenant_id, query="violin")
    assert (error["code"], "KHO_MESSAGE_INDEX" in error["guidance"]) == ("UNAVAILABLE", True)


def write_units(act: Callable[[], None]) -> float:
    """Return the write units that DynamoDB counts."""
    used = 0.0

    def count(_operation: str, params: Any) -> None:
        params["ReturnConsumedCapacity"] = "TOTAL"

    def add(operation: str, answer: Any) -> None:
        nonlocal used
        consumed = answer.get("ConsumedCapacity", [])
        if operation in ("PutItem", "UpdateItem", "BatchWriteItem", "TransactWriteItems"):
            used += sum(each["CapacityUnits"] for each in (consumed if isinstance(consumed, list) else [consumed]))

    with intercept_requests(count, add):
        act()
    return used


def test_message_costs_at_most_one_more_write_unit(conversations: Conversations, settings: Callable[..., None]) -> None:
    """The marker is written with the message."""

    def add() -> None:
        for number in range(12):
            conversations.append("chat", "user", f"Tin nhắn {number}: cây dương xỉ cần nước. " * 5, name="Lan")

    conversations.get_or_create("chat", "person:17")
    with_index = write_units(add)
    settings(KHO_MESSAGE_INDEX="false")
    conversations.clear("chat")
    without = write_units(add)
    assert (without, with_index) == (24, 36)


# The scope


def test_search_is_restricted_to_a_scope(conversations: Conversations) -> None:
    """By conversation, prefix, subject, role and time; before and after the messages are indexed."""
    conversations.append("shop_1", "user", "The ferns need water.", subject="person:17")
    conversations.append("shop_1", "assistant", "Water the ferns at dawn.")
    conversations.append("shop_2", "user", "My ferns are dry.", subject="person:18")
    conversations.append("home", "user", "Ferns like shade.")
    times = sorted(item["at"] for item in items(conversations) if item["sk"].startswith(keys.MESSAGE))
    for is_indexed in (False, True):
        if is_indexed:
            run_indexer(conversations)

        def found(**scope: Any) -> set[str]:
            answers = [ask(conversations.tenant_id, **scope), ask(conversations.tenant_id, query="ferns", **scope)]
            newest, best = (set(texts(answer)) for answer in answers)
            assert newest == best
            return newest

        assert len(found()) == 4
        assert found(conversation_id="home") == {"Ferns like shade."}
        assert found(conversation_id="none") == set()
        assert found(conversation_prefix="shop_2") == {"My ferns are dry."}
        assert found(conversation_prefix="shop_") == found() - {"Ferns like shade."}
        assert found(subject="person:17") == {"The ferns need water.", "Water the ferns at dawn."}
        assert found(subject="person:19") == set()
        assert found(roles=["assistant"]) == {"Water the ferns at dawn."}
        assert found(**{"from": times[0], "to": "2999-01-01T00:00:00Z"}) == found()
        assert found(to=times[0]) == set()
        assert found(**{"from": "2999-01-01T00:00:00Z"}) == set()


def test_newest_come_first_without_a_query(conversations: Conversations) -> None:
    say(conversations, "one", "first", "second")
    run_indexer(conversations)
    say(conversations, "two", "third")
    say(conversations, "one", "fourth")
    answer = ask(conversations.tenant_id)
    assert texts(answer) == ["fourth", "third", "second", "first"]
    assert all("score" not in each for each in answer["messages"])
    assert texts(ask(conversations.tenant_id, limit=2)) == ["fourth", "third"]


def test_neighbours_are_those_that_exist(conversations: Conversations) -> None:
    """In their order, with names and times, without deleted ones."""
    say(conversations, "chat", "a", "b", "gone", "The ferns are dry.", "d", "e", "f")
    conversations.append("chat", "assistant", "g", name="Lan")
    delete_message(conversations, "chat", "gone")
    for is_indexed in (False, True):
        if is_indexed:
            run_indexer(conversations)
        [found, *_] = ask(conversations.tenant_id, query="Are the ferns dry?", neighbours=2)["messages"]
        assert [each["content"] for each in found["neighbours"]] == ["a", "b", "d", "e"]
    last = ask(conversations.tenant_id, neighbours=5, limit=1)["messages"][0]
    assert last["neighbours"][-1]["content"] == "f"
    assert (last["name"], last["role"]) == ("Lan", "assistant")


# Forgotten


def forget(conversations: Conversations, way: str) -> None:
    if way == "delete_message":
        delete_message(conversations, "chat", "The secret ferns.")
    elif way == "clear":
        conversations.clear("chat")
    elif way == "delete":
        conversations.delete("chat")
    elif way == "expiry":
        conversations.set_expiry("chat", timestamps.now())
    else:
        conversations.subjects.erase("person:17", "admin")


@pytest.mark.parametrize("way", ["delete_message", "clear", "delete", "expiry", "erase"])
@pytest.mark.parametrize("is_indexed", [True, False])
def test_what_was_forgotten_is_never_found(
    conversations: Conversations,
    way: str,
    is_indexed: bool,
) -> None:
    """The index still has it, and its marker may be there."""
    say(conversations, "chat", "The secret ferns.", subject="person:17")
    say(conversations, "other", "Other ferns.")
    if is_indexed:
        run_indexer(conversations)
    forget(conversations, way)
    for scope in ({}, {"query": "ferns"}, {"query": "secret"}, {"conversation_prefix": "chat"}):
        assert "The secret ferns." not in texts(ask(conversations.tenant_id, **scope))
    assert "Other ferns." in texts(ask(conversations.tenant_id, query="ferns", limit=1))


def test_conversations_that_have_ended_take_no_places(
    conversations: Conversations, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The index is asked again without them."""
    say(conversations, "gone", *(f"Ferns {number} like the shade of trees." for number in range(15)))
    say(conversations, "chat", "There is something about ferns.")
    run_indexer(conversations)
    conversations.delete("gone")
    assert texts(ask(conversations.tenant_id, query="Ferns like the shade of trees", limit=1)) == [
        "There is something about ferns."
    ]


def test_messages_after_a_deleted_one_are_indexed_again(conversations: Conversations) -> None:
    """They were read with it, and its words counted for them."""
    say(conversations, "chat", "Tell me about Zanzibar.", "Yes.", "Fine.", "Good.")
    run_indexer(conversations)
    before = proposed(conversations, "Zanzibar")
    delete_message(conversations, "chat", "Tell me about Zanzibar.")
    record = stream_record(
        keys.messages(conversations.tenant_id, conversations.require("chat").generation),
        keys.message(1),
        event="MODIFY",
    )
    assert deliver(index_messages.handler, record) == []
    after = proposed(conversations, "Zanzibar")
    assert 1 in before
    assert 1 not in after
    assert after[2] < before[2]
    assert after[3] < before[3]
    generation = conversations.require("chat").generation
    assert message_index().holds(conversations.tenant_id, [MessageRef(generation, n) for n in range(1, 5)]) == {
        MessageRef(generation, n) for n in range(2, 5)
    }


@pytest.mark.parametrize("way", ["clear", "delete"])
def test_conversation_that_ends_while_it_is_indexed_leaves_the_index(conversations: Conversations, way: str) -> None:
    say(conversations, "chat", *CHAT)
    generation = conversations.require("chat").generation
    records = [
        stream_record(keys.messages(conversations.tenant_id, generation), keys.message(n), number=n)
        for n in range(1, 6)
    ]
    upsert = MessageIndex.upsert

    def end_before(*arguments: Any) -> None:
        forget(conversations, way)
        assert (
            deliver(purge_messages.handler, stream_record(keys.purges(conversations.tenant_id), f"purge#{generation}"))
            == []
        )
        upsert(*arguments)

    with pytest.MonkeyPatch.context() as patches:
        patches.setattr(MessageIndex, "upsert", end_before)
        assert deliver(index_messages.handler, *records) == []
    assert message_index().generations(conversations.tenant_id) == set()
    assert marked(conversations) == 0


def test_message_that_is_deleted_while_it_is_indexed_leaves_the_index(conversations: Conversations) -> None:
    """The record of the deletion comes later, or has come before the write to the index."""
    say(conversations, "chat", "secret", "Yes.")
    generation = conversations.require("chat").generation
    partition = keys.messages(conversations.tenant_id, generation)
    upsert = MessageIndex.upsert

    def delete_before(*arguments: Any) -> None:
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(MessageIndex, "upsert", upsert)
            delete_message(conversations, "chat", "secret")
            assert deliver(index_messages.handler, stream_record(partition, keys.message(1), event="MODIFY")) == []
        upsert(*arguments)

    with pytest.MonkeyPatch.context() as patches:
        patches.setattr(MessageIndex, "upsert", delete_before)
        assert (
            deliver(
                index_messages.handler,
                stream_record(partition, keys.message(1)),
                stream_record(partition, keys.message(2), number=2),
            )
            == []
        )
    assert set(proposed(conversations, "secret")) <= {2}
    assert proposed(conversations, "secret").get(2, 0.0) < 0.5


def test_subject_and_expiry_that_change_reach_the_index(conversations: Conversations) -> None:
    say(conversations, "chat", "The ferns are dry.")
    run_indexer(conversations)
    assert proposed(conversations, "ferns", subject=keys.indexed_subject("person:17")) == {}
    conversations.get_or_create("chat", "person:17")
    conversations.set_expiry("chat", timestamps.now() + 3600 * 1_000_000)
    run_indexer(conversations)
    assert set(proposed(conversations, "ferns", subject=keys.indexed_subject("person:17"))) == {1}
    assert not [item for item in items(conversations) if item["sk"].startswith(keys.FIELDS)]
    conversations.set_expiry("chat", timestamps.now())
    run_indexer(conversations)
    assert proposed(conversations, "ferns") == {}


def test_expiry_that_changes_while_messages_are_indexed_reaches_the_index(conversations: Conversations) -> None:
    say(conversations, "chat", "The ferns are dry.")
    with another_caller(lambda: conversations.set_expiry("chat", timestamps.now()), before="GetItem", at=2):
        run_indexer(conversations)
    assert proposed(conversations, "ferns") == {}


def test_worker_waits_for_the_index(conversations: Conversations, monkeypatch: pytest.MonkeyPatch) -> None:
    """The records come again, and the markers stay."""
    say(conversations, "chat", "The ferns are dry.")
    partition = keys.messages(conversations.tenant_id, conversations.require("chat").generation)

    def refuse(*_: Any) -> Any:
        raise Unavailable("The index is not answering.")

    with monkeypatch.context() as patches:
        patches.setattr(index_module.MessageIndex, "upsert", refuse)
        assert deliver(index_messages.handler, stream_record(partition, keys.message(1))) == ["1"]
    assert marked(conversations) == 1
    assert deliver(index_messages.handler, stream_record(partition, keys.message(1))) == []
    assert marked(conversations) == 0


def test_marker_of_a_lost_generation_goes_with_its_purge(conversations: Conversations) -> None:
    say(conversations, "chat", "a", "b")
    say(conversations, "other", "c")
    generation = conversations.require("chat").generation
    conversations.delete("chat")
    conversations.purge(generation)
    pages = [conversations.table.query(keys.unindexed(conversations.tenant_id, n), Keys.after(" ")) for n in range(4)]
    left = [item["conversation"] for shard in pages for page in shard for item in page]
    assert left == ["other"]


def test_answer_fits_in_a_response(conversations: Conversations) -> None:
    """Neighbours are left out before messages, and messages beyond the size."""
    say(conversations, "wide", *(f"Ferns {number}. " + "\x01" * (256 * 1024 - 16) for number in range(8)))
    answer = ask(conversations.tenant_id, neighbours=5)
    assert [each["number"] for each in answer["messages"]] == [8]
    assert "neighbours" not in answer["messages"][0]
    assert [each["number"] for each in ask(conversations.tenant_id)["messages"]] == [8, 7]
