"""The contract of memory-server's conversations, on the real store."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from infra.local.template import load
from shared.aws.dynamodb import Keys, Table, Write
from shared.memory import conversations as stored_conversations
from shared.memory import keys
from shared.memory.conversations import Conversations
from shared.memory.message_history import MessageHistory
from shared.platform.config import config
from shared.rpc.errors import InvalidParams, NotFound
from tests.helpers.dynamodb import boto3_client
from tests.helpers.dynamodb_requests import answer_operation, intercept_requests
from tests.helpers.interference import another_caller
from tests.helpers.size import sized
from tests.helpers.store_faults import FAILED
from tests.helpers.wait import CEILING_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from shared.memory.models import ChatMessage


@pytest.fixture
def conversations(tenant: str) -> Conversations:
    return Conversations(Table(config().memory_table), tenant)


def items_of(tenant: str, url: str) -> list[dict[str, Any]]:
    """Return every item of a tenant as stored in the table."""
    pages = boto3_client(url).get_paginator("scan").paginate(TableName=config().memory_table)
    return [item for page in pages for item in page["Items"] if item["pk"]["S"].startswith(f"{tenant}#")]


def everything(conversations: Conversations, conversation_id: str, limit: int | None = None) -> Iterator[ChatMessage]:
    """Return all messages, over as many pages as needed."""
    cursor = None
    while True:
        page = MessageHistory(conversations, conversation_id).page(limit, cursor)
        yield from page.messages
        cursor = page.next_cursor
        if cursor is None:
            return


@pytest.mark.stress
def test_sixteen_concurrent_writers_keep_all_messages_in_order(
    conversations: Conversations, record_property: Callable[[str, object], None]
) -> None:
    """Concurrent writers of one conversation lose no message, and each keeps its order."""
    messages = sized(15, full=500)

    def write(writer: int) -> None:
        for number in range(messages):
            conversations.append("busy", "user", f"{writer}:{number}")

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(write, range(16)))
    by_writer: dict[str, list[int]] = defaultdict(list)
    for message in everything(conversations, "busy"):
        writer, number = message.content.split(":")
        by_writer[writer].append(int(number))
    assert len(by_writer) == 16
    assert all(numbers == list(range(messages)) for numbers in by_writer.values())
    record_property("load", f"16 writers, {16 * messages:,} messages")
    record_property("outcome", "0 lost, 0 out of order")


def test_message_follows_previously_acknowledged_ones(conversations: Conversations, tenant: str) -> None:
    """Two machines take turns: a message that one has acknowledged precedes those that the other adds later."""
    machines = [conversations, Conversations(Table(config().memory_table), tenant)]
    for number in range(40):
        machines[number % 2].append("turns", "user", str(number))
    assert [message.content for message in everything(conversations, "turns")] == [str(number) for number in range(40)]


def test_concurrent_get_or_create_creates_one_conversation(
    conversations: Conversations, tenant: str, store: str
) -> None:
    gate = threading.Barrier(16, timeout=CEILING_SECONDS)

    def create(_: int) -> str:
        gate.wait()
        return conversations.get_or_create("wished")

    with ThreadPoolExecutor(16) as pool:
        assert set(pool.map(create, range(16))) == {"wished"}
    assert len(items_of(tenant, store)) == 2  # the header, and its line in the list


@pytest.mark.stress
def test_clear_and_delete_hide_old_messages_during_concurrent_writes(
    conversations: Conversations, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    """A cleared or deleted conversation shows no earlier message, while others write to it."""
    monkeypatch.setattr(stored_conversations, "_ATTEMPTS", 1000)  # one writer may meet many deletions in a row
    rounds = sized(6, full=100)
    stop = threading.Event()
    conversations.append("flood", "user", "0")

    def write(writer: int) -> None:
        number = 0
        while not stop.is_set():
            number += 1
            conversations.append("flood", "user", f"{writer}:{number}")

    with ThreadPoolExecutor(4) as pool:
        writing = [pool.submit(write, writer) for writer in range(4)]
        try:
            for round_number in range(rounds):
                before = {message.content for message in everything(conversations, "flood")}
                (conversations.clear if round_number % 2 else conversations.delete)("flood")
                conversations.get_or_create("flood")
                after = {message.content for message in everything(conversations, "flood")}
                assert not before & after
        finally:
            stop.set()
        for each in writing:
            each.result()
    record_property("load", f"4 writers without pause, {rounds} clearings and deletions")
    record_property("outcome", "0 earlier messages shown")


@pytest.mark.parametrize("ending", ["clear", "delete"])
def test_purge_removes_all_items(conversations: Conversations, tenant: str, store: str, ending: str) -> None:
    for number in range(60):
        conversations.append("over", "user", str(number))
    conversations.set_summary(conversations.require("over"), "told", covers=60)
    generation = conversations.require("over").generation
    getattr(conversations, ending)("over")
    conversations.purge(generation)
    # A writer with a number from before the end puts its message now. The second purge takes it.
    late = {"pk": keys.messages(tenant, generation), "sk": keys.message(61), "role": "user", "content": "late"}
    conversations.table.write(Write("Put", late))
    conversations.purge(generation)
    remaining = {(item["pk"]["S"].removeprefix(tenant), item["sk"]["S"]) for item in items_of(tenant, store)}
    kept = {("#conversation#over", "conversation"), ("#conversations", "over")} if ending == "clear" else set()
    assert remaining == kept | {("#purge", f"purge#{generation}")}


def test_second_purge_runs_after_all_old_writers_ended(conversations: Conversations, tenant: str) -> None:
    """A writer lives as long as its function does, and an endpoint waits for it."""
    conversations.append("over", "user", "x")
    generation = conversations.require("over").generation
    before = int(time.time())
    conversations.clear("over")
    purge = conversations.table.get(keys.purges(tenant), f"{keys.PURGE}{generation}")
    assert purge
    assert before + 120 <= purge["expires_at"] <= time.time() + 120
    assert max(each.timeout for name, each in load().functions.items() if not name.startswith("workers-")) < 60


def test_summary_is_removed_with_its_messages(conversations: Conversations) -> None:
    conversations.append("secret", "user", "secret")
    conversations.set_summary(conversations.require("secret"), "a secret plan", covers=1)
    conversations.clear("secret")
    assert MessageHistory(conversations, "secret").summary() is None


@pytest.mark.parametrize("limit", [1, 7, 30, 31, None])
def test_pages_of_any_size_cover_the_whole_history(conversations: Conversations, limit: int | None) -> None:
    for number in range(30):
        conversations.append("paged", "user", str(number))
    read = [message.content for message in everything(conversations, "paged", limit)]
    assert read == [str(number) for number in range(30)]


def test_history_over_5_mib_is_paged_automatically(conversations: Conversations) -> None:
    contents = [f"{number}" + "x" * (256 * 1024 - 8) for number in range(24)]
    for content in contents:
        conversations.append("large", "user", content)
    first = MessageHistory(conversations, "large").page(None, None)
    assert first.next_cursor
    assert sum(len(message.content) for message in first.messages) > 4_500_000
    assert [message.content for message in everything(conversations, "large")] == contents
    old = MessageHistory(conversations, "large").old(1, None, None, leave_out_summarized=True)
    assert (len(old.messages), bool(old.next_cursor), old.total_count) == (len(first.messages), True, 24)


def test_cursor_from_before_clear_is_invalid(conversations: Conversations) -> None:
    for number in range(3):
        conversations.append("turned", "user", str(number))
    cursor = MessageHistory(conversations, "turned").page(1, None).next_cursor
    conversations.clear("turned")
    with pytest.raises(InvalidParams, match="cursor"):
        MessageHistory(conversations, "turned").page(1, cursor)


@pytest.mark.parametrize("cursor", ["x", "bm9uc2Vuc2U", "WzFd", "W10", "é", "WyJcdWQ4MDAiLDFd", "[" * 3000])
def test_forged_cursor_is_rejected(conversations: Conversations, cursor: str) -> None:
    conversations.append("any", "user", "x")
    with pytest.raises(InvalidParams, match="cursor"):
        MessageHistory(conversations, "any").page(1, cursor)
    with pytest.raises(InvalidParams, match="cursor"):
        conversations.list_ids(1, cursor)


def test_old_messages_precede_recent_ones_and_are_unsummarized(conversations: Conversations) -> None:
    for number in range(10):
        conversations.append("old", "user", str(number))

    def old(*, leave_out: bool = True) -> tuple[list[str], int]:
        history = MessageHistory(conversations, "old").old(6, None, None, leave_out_summarized=leave_out)
        return [message.content for message in history.messages], history.total_count

    assert old() == (["0", "1", "2", "3"], 10)
    conversations.set_summary(conversations.require("old"), "so far", covers=10)
    assert old() == ([], 10)
    assert old(leave_out=False) == (["0", "1", "2", "3"], 10)
    for number in range(10, 18):
        conversations.append("old", "user", str(number))
    assert old() == (["10", "11"], 18)


def test_an_empty_summary_covers_nothing(conversations: Conversations) -> None:
    for number in range(10):
        conversations.append("blank", "user", str(number))
    conversations.set_summary(conversations.require("blank"), "", covers=10)
    assert len(MessageHistory(conversations, "blank").old(6, None, None, leave_out_summarized=True).messages) == 4


def test_oversized_context_keeps_the_newest_messages(conversations: Conversations) -> None:
    for number in range(6):
        conversations.append("wide", "user", f"{number}" + "\x01" * (256 * 1024 - 8))
    assert [message.content[0] for message in MessageHistory(conversations, "wide").recent(6)] == ["4", "5"]


def test_total_count_counts_messages_not_sequence_numbers(conversations: Conversations) -> None:
    """A writer that fails between taking a number and writing leaves a gap, which is never counted."""
    conversations.append("gap", "user", "first")
    lost = Write(
        "Update",
        {"pk": keys.conversation(conversations.tenant_id, "gap"), "sk": keys.HEADER},
        expression="ADD last_number :one",
        values={":one": 1},
    )
    conversations.table.write(lost)
    conversations.append("gap", "user", "third")
    assert MessageHistory(conversations, "gap").old(6, None, None, leave_out_summarized=True).total_count == 2
    assert [message.content for message in MessageHistory(conversations, "gap").recent(6)] == ["first", "third"]


def test_total_count_reads_no_more_of_a_longer_conversation(conversations: Conversations) -> None:
    """The count of all messages reads the same number of items, however many messages there are."""

    def items_read(length: int) -> int:
        for number in range(length):
            conversations.append(f"of {length}", "user", str(number))
        read = 0

        def add(operation: str, answer: Any) -> None:
            nonlocal read
            read += answer["ScannedCount"] if operation == "Query" else operation == "GetItem"

        with intercept_requests(lambda *_: None, add):
            history = MessageHistory(conversations, f"of {length}")
            assert history.old(6, 1, None, leave_out_summarized=True).total_count == length
        return read

    assert items_read(175) == items_read(47)


def test_slow_and_lost_messages_are_counted_right(
    conversations: Conversations, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A message that is written after its number was counted is counted when it is there, a lost one never is."""
    real = Table.put_all
    slow: list[list[Any]] = []

    def put_all(table: Table, items: list[Any]) -> None:
        if items[0].get("content") in {"slow", "lost"}:
            slow.append(items)
        else:
            real(table, items)

    def total() -> int:
        return MessageHistory(conversations, "slow").old(6, None, None, leave_out_summarized=True).total_count

    monkeypatch.setattr(Table, "put_all", put_all)
    for content in ("slow", "lost", *map(str, range(30))):
        conversations.append("slow", "user", content)
    assert total() == 30
    real(conversations.table, slow[0])
    assert total() == 31
    for number in range(40):
        conversations.append("slow", "user", str(number))
    assert total() == 71
    header = conversations.require("slow")
    assert header.gaps == (2,), "a message that is there is looked up no more"
    conversations.clear("slow")
    assert total() == 0


def test_messages_of_a_conversation_that_another_writer_just_created_are_kept(conversations: Conversations) -> None:
    with another_caller(lambda: conversations.append("new", "user", "theirs"), before="TransactWriteItems"):
        conversations.append("new", "user", "mine")
    assert [message.content for message in everything(conversations, "new")] == ["theirs", "mine"]


def test_conversation_that_is_deleted_just_before_its_next_number_is_taken_begins_again(
    conversations: Conversations,
) -> None:
    conversations.append("gone", "user", "before")
    with another_caller(lambda: conversations.delete("gone"), before="UpdateItem"):
        conversations.append("gone", "user", "after")
    assert [message.content for message in everything(conversations, "gone")] == ["after"]
    assert conversations.list_ids(10, None)[0] == ["gone"]


@pytest.mark.parametrize("ending", ["clear", "delete"])
def test_ending_a_conversation_that_another_caller_just_ended_queues_every_generation(
    conversations: Conversations, tenant: str, ending: str
) -> None:
    """Each generation has its own items, so each must be purged."""
    conversations.append("over", "user", "first")
    generations = [conversations.require("over").generation]

    def end_and_begin_again() -> None:
        getattr(conversations, ending)("over")
        conversations.append("over", "user", "second")
        generations.append(conversations.require("over").generation)

    with another_caller(end_and_begin_again, before="TransactWriteItems"):
        getattr(conversations, ending)("over")
    queued = [item["sk"] for page in conversations.table.query(keys.purges(tenant), Keys.after(" ")) for item in page]
    assert sorted(queued) == sorted(f"{keys.PURGE}{generation}" for generation in generations)
    assert not conversations.find("over") or not list(everything(conversations, "over"))


def append_sixteen(conversations: Conversations, conversation_id: str) -> None:
    """Append as many messages as are counted together: after as many updates for their numbers, one for the count."""
    for number in range(16):
        conversations.append(conversation_id, "user", str(number))


def test_count_is_not_written_over_a_conversation_that_was_just_cleared(conversations: Conversations) -> None:
    def clear_and_begin_again() -> None:
        conversations.clear("cleared")
        conversations.append("cleared", "user", "new")

    conversations.get_or_create("cleared")
    with another_caller(clear_and_begin_again, before="UpdateItem", at=17):
        append_sixteen(conversations, "cleared")
    assert conversations.require("cleared").counted_to == 0
    history = MessageHistory(conversations, "cleared").old(6, None, None, leave_out_summarized=True)
    assert history.total_count == 1


def test_count_never_replaces_one_of_more_messages(conversations: Conversations) -> None:
    conversations.get_or_create("counted")
    with another_caller(lambda: append_sixteen(conversations, "counted"), before="UpdateItem", at=17):
        append_sixteen(conversations, "counted")
    assert conversations.require("counted").counted_to == 32
    with another_caller(lambda: append_sixteen(conversations, "counted"), before="UpdateItem", at=17):
        append_sixteen(conversations, "counted")
    assert conversations.require("counted").counted_to == 64


def test_message_is_acknowledged_although_it_cannot_be_counted(conversations: Conversations) -> None:
    with intercept_requests(answer_operation("Query", lambda _: FAILED)):
        append_sixteen(conversations, "uncounted")
    assert conversations.require("uncounted").counted_to == 0
    assert len(list(everything(conversations, "uncounted"))) == 16
    append_sixteen(conversations, "uncounted")
    assert conversations.require("uncounted").counted_to == 32, "the next writer counts"


def test_the_list_is_paged_in_order(conversations: Conversations) -> None:
    expected = sorted(f"chat_{number:03d}" for number in range(25))
    for conversation_id in expected:
        conversations.get_or_create(conversation_id)
    listed: list[str] = []
    cursor = None
    while True:
        ids, cursor = conversations.list_ids(10, cursor)
        listed += ids
        if cursor is None:
            break
    assert listed == expected
    assert conversations.list_ids(25, None) == (expected, None), "no cursor without more"


def test_listed_conversations_have_times_and_the_newest_message(conversations: Conversations) -> None:
    """A list has each conversation's times and the beginning of its newest message, page by page."""
    conversations.get_or_create("chat_0")
    for number in range(1, 12):
        conversations.append(f"chat_{number:02d}", "user", "first")
        conversations.append(f"chat_{number:02d}", "assistant", f"ờ{number}" * 200)
    listed = []
    cursor = None
    while True:
        page = conversations.list_entries(5, cursor, "chat_")
        listed += page.conversations
        if (cursor := page.next_cursor) is None:
            break
    assert [each.conversation_id for each in listed] == ["chat_0", *(f"chat_{number:02d}" for number in range(1, 12))]
    assert [each.preview for each in listed] == [None, *((f"ờ{number}" * 200)[:80] for number in range(1, 12))]
    assert all(each.created_at <= each.updated_at for each in listed)
    conversations.clear("chat_01")
    conversations.delete("chat_02")
    left = conversations.list_entries(100, None, "chat_0").conversations
    assert [(each.conversation_id, each.preview) for each in left[:2]] == [("chat_0", None), ("chat_01", None)]
    assert left[2].conversation_id == "chat_03"


def test_newest_messages_come_first_in_pages(conversations: Conversations) -> None:
    """Pages from the newest message back cover the conversation, with numbers and times."""
    for number in range(25):
        conversations.append("back", "user", str(number))
    pages = []
    cursor = None
    while True:
        page = MessageHistory(conversations, "back").newest(10, cursor)
        pages.append(page.messages)
        conversations.append("back", "user", "added meanwhile")
        if (cursor := page.next_cursor) is None:
            break
    messages = [message for page in pages for message in page]
    assert [len(page) for page in pages] == [10, 10, 5]
    assert [message.content for message in messages] == [str(number) for number in reversed(range(25))]
    assert [message.number for message in messages] == list(range(25, 0, -1))
    assert [message.at for message in messages] == sorted((message.at for message in messages), reverse=True)
    cursor = MessageHistory(conversations, "back").newest(1, None).next_cursor
    conversations.clear("back")
    assert MessageHistory(conversations, "back").newest(10, None).messages == []
    for stale in (cursor, "nonsense"):
        with pytest.raises(InvalidParams):
            MessageHistory(conversations, "back").newest(10, stale)


def test_details_tell_what_the_summary_covers(conversations: Conversations) -> None:
    """A conversation's details count its messages, and name the last one that the summary covers."""
    for number in range(20):
        conversations.append("told", "user", str(number))
    history = MessageHistory(conversations, "told")
    assert (history.details(6).total_count, history.details(6).summary) == (20, None)
    conversations.set_summary(history.header, "About numbers.", history.header.last_number)
    conversations.append("told", "user", "20")
    details = MessageHistory(conversations, "told").details(6)
    assert details.summary is not None
    assert (details.total_count, details.summary.text, details.summary.covers) == (21, "About numbers.", 20)
    assert details.created_at <= details.summary.updated_at <= details.updated_at


def test_reading_unknown_conversation(conversations: Conversations) -> None:
    with pytest.raises(NotFound):
        MessageHistory(conversations, "nowhere")


@pytest.mark.parametrize(
    "content", ["\x00", "a\x00b", " lead and trail \n", "e\u0301 ≠ é", "💊", "\u2028\ufeff", '"\\']
)
def test_text_round_trip(conversations: Conversations, content: str) -> None:
    conversations.append("bytes", "user", content)
    assert [message.content for message in everything(conversations, "bytes")] == [content]
