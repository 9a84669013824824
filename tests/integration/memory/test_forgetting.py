"""Forgetting: a message, a conversation that expires, and all conversations of a subject."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from infra.local.dynamodb import connect
from infra.local.template import load
from infra.local.ttl import TtlSweeper
from shared.aws.dynamodb import Keys, Table
from shared.memory import keys, message_deletion
from shared.memory.conversations import Conversations
from shared.memory.message_history import MessageHistory
from shared.platform.config import config
from shared.rpc import timestamps
from shared.rpc.errors import Conflict, NotFound
from tests.helpers.interference import another_caller
from tests.helpers.stream_deliveries import deliver, stream_record
from workers import purge_messages

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SECOND = 1_000_000
WEEK = 7 * 86_400 * SECOND


@pytest.fixture
def conversations(tenant: str) -> Conversations:
    return Conversations(Table(config().memory_table), tenant)


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Set the time, in microseconds since 1970."""
    return lambda time: monkeypatch.setattr(timestamps, "now", lambda: time)


def contents(conversations: Conversations, conversation_id: str) -> list[str]:
    return [each.content for each in MessageHistory(conversations, conversation_id).page(None, None).messages]


def message_ids(conversations: Conversations, conversation_id: str) -> dict[str, str]:
    """Return the ids of a conversation's messages by their texts."""
    newest = MessageHistory(conversations, conversation_id).newest(1000, None)
    return {each.content: each.message_id for each in newest.messages}


def delete_message(conversations: Conversations, conversation_id: str, *texts: str) -> None:
    ids = message_ids(conversations, conversation_id)
    for text in texts:
        message_deletion.delete_message(conversations, conversation_id, ids[text], "lan")


def items(conversations: Conversations) -> list[dict[str, Any]]:
    """Return every item of the tenant."""
    return [item for page in conversations.table.scan(f"{conversations.tenant_id}#") for item in page]


def say(conversations: Conversations, conversation_id: str, *texts: str, **more: Any) -> None:
    for text in texts:
        conversations.append(conversation_id, "user", text, **more)


# Messages


def test_deleted_message_is_in_no_read(conversations: Conversations) -> None:
    """No read, page, count or preview has it; who deleted it and when is kept, the text nowhere."""
    say(conversations, "chat", *(f"text {number}" for number in range(1, 31)))
    history = MessageHistory(conversations, "chat")
    conversations.set_summary(history.header, "About text 3.", 30)
    gone = [f"text {number}" for number in (3, 16, 17, 25, 26, 27, 28, 29, 30)]
    delete_message(conversations, "chat", *gone)
    left = [text for number in range(1, 31) if (text := f"text {number}") not in gone]
    history = MessageHistory(conversations, "chat")
    for limit in (1, 2, 7, None):
        pages, cursor = [], None
        while True:
            page = history.page(limit, cursor)
            pages += [each.content for each in page.messages]
            if (cursor := page.next_cursor) is None:
                break
        assert pages == left
    newest = history.newest(5, None)
    newest_too = history.newest(100, newest.next_cursor)
    assert [each.content for each in newest.messages + newest_too.messages] == left[::-1]
    assert [each.content for each in history.recent(6)] == left[-6:]
    old = history.old(6, None, None, leave_out_summarized=True)
    assert ([each.content for each in old.messages], old.total_count) == (left[:-6], len(left))
    assert history.details(6).total_count == len(left)
    assert history.summary() is None
    assert conversations.require("chat").preview == "text 24"
    stored = str(items(conversations))
    assert not [text for text in gone if f"'{text}'" in stored]
    assert "About text 3." not in stored
    record = conversations.table.get(keys.messages(conversations.tenant_id, history.header.generation), keys.message(3))
    assert record
    assert record["deleted_by"] == "lan"
    assert record["at"] <= record["deleted_at"]


def test_deletion_again_changes_nothing(conversations: Conversations) -> None:
    say(conversations, "chat", "a", "b")
    id_ = message_ids(conversations, "chat")["a"]
    for caller in ("lan", "minh"):
        message_deletion.delete_message(conversations, "chat", id_, caller)
    history = MessageHistory(conversations, "chat")
    assert (history.details(6).total_count, history.header.deletions) == (1, 1)
    record = history.item(1)
    assert record
    assert record["deleted_by"] == "lan"


def test_message_id_is_never_used_again(conversations: Conversations) -> None:
    """Neither after a deletion, nor after clearing or deleting the conversation."""
    seen: set[str] = set()
    ends: tuple[Callable[[], None], ...] = (
        lambda: delete_message(conversations, "chat", "a"),
        lambda: conversations.clear("chat"),
        lambda: conversations.delete("chat"),
        lambda: None,
    )
    for end in ends:
        say(conversations, "chat", "a")
        ids = set(message_ids(conversations, "chat").values())
        assert not ids & seen
        seen |= ids
        end()
    assert len(seen) == 4


@pytest.mark.parametrize("message_id", ["x", "msg_1", f"msg_{'0' * 32}_1", f"msg_{'0' * 32}_{'9' * 13}"])
def test_unknown_message_is_not_found(conversations: Conversations, message_id: str) -> None:
    say(conversations, "chat", "a")
    with pytest.raises(NotFound, match="Message not found"):
        message_deletion.delete_message(conversations, "chat", message_id, "lan")
    generation = conversations.require("chat").generation
    with pytest.raises(NotFound, match="Message not found"):
        message_deletion.delete_message(conversations, "chat", f"msg_{generation}_2", "lan")


def test_message_of_before_a_clearing_is_not_found(conversations: Conversations) -> None:
    say(conversations, "chat", "a")
    id_ = message_ids(conversations, "chat")["a"]
    conversations.clear("chat")
    say(conversations, "chat", "b")
    with pytest.raises(NotFound):
        message_deletion.delete_message(conversations, "chat", id_, "lan")
    assert contents(conversations, "chat") == ["b"]


def test_concurrent_deletions_and_writes_count_right(conversations: Conversations) -> None:
    say(conversations, "busy", *map(str, range(24)))
    with ThreadPoolExecutor(4) as pool:
        deleting = [pool.submit(delete_message, conversations, "busy", *map(str, range(n, 24, 3))) for n in range(2)]
        say(conversations, "busy", *map(str, range(24, 40)))
        for each in deleting:
            each.result()
    left = [str(number) for number in range(40) if number >= 24 or number % 3 == 2]
    assert contents(conversations, "busy") == left
    assert MessageHistory(conversations, "busy").details(6).total_count == len(left)
    assert conversations.require("busy").preview == "39"


def test_preview_of_a_message_added_just_before_its_deletion_stays(conversations: Conversations) -> None:
    say(conversations, "chat", "a", "b")
    with another_caller(lambda: say(conversations, "chat", "c"), before="TransactWriteItems"):
        delete_message(conversations, "chat", "b")
    assert conversations.require("chat").preview == "c"
    delete_message(conversations, "chat", "c")
    assert conversations.require("chat").preview == "a"
    delete_message(conversations, "chat", "a")
    assert conversations.require("chat").preview is None
    assert MessageHistory(conversations, "chat").details(6).total_count == 0


def test_summary_of_another_part_stays(conversations: Conversations) -> None:
    say(conversations, "chat", *map(str, range(1, 11)))
    conversations.set_summary(conversations.require("chat"), "About 1 to 4.", 4)
    delete_message(conversations, "chat", "5")
    assert MessageHistory(conversations, "chat").summary()
    delete_message(conversations, "chat", "4")
    assert MessageHistory(conversations, "chat").summary() is None


def test_names_and_ids_are_listed(conversations: Conversations) -> None:
    """The other reads have the shape of the contract."""
    conversations.append("chat", "user", "Xin chào", name="Lan")
    conversations.append("chat", "assistant", "Chào Lan")
    newest = MessageHistory(conversations, "chat").newest(10, None).messages
    assert [(each.number, each.name) for each in newest] == [(2, None), (1, "Lan")]
    assert len({each.message_id for each in newest}) == 2
    assert [vars_of(each) for each in MessageHistory(conversations, "chat").recent(6)] == [
        {"role": "user", "content": "Xin chào"},
        {"role": "assistant", "content": "Chào Lan"},
    ]


def vars_of(message: Any) -> dict[str, Any]:
    return {name: getattr(message, name) for name in message.__slots__}


# Expiry


def test_expiry_is_exact_whenever_the_purge_comes(conversations: Conversations, at: Callable[[int], None]) -> None:
    """From that time on, no read finds the conversation; the purge comes a week later."""
    say(conversations, "chat", "secret")
    say(conversations, "other", "x")
    expiry = timestamps.now() + 3600 * SECOND
    conversations.set_expiry("chat", expiry)
    at(expiry - 1)
    assert contents(conversations, "chat") == ["secret"]
    assert [each.expires_at for each in conversations.list_entries(10, None).conversations] == [
        timestamps.to_iso(expiry),
        None,
    ]
    assert conversations.list_ids(10, None)[0] == ["chat", "other"]
    at(expiry)
    with pytest.raises(NotFound):
        MessageHistory(conversations, "chat")
    with pytest.raises(NotFound):
        conversations.set_expiry("chat", expiry + WEEK)
    assert conversations.list_ids(10, None) == (["other"], None)
    assert [each.conversation_id for each in conversations.list_entries(1, None).conversations] == ["other"]
    at(expiry - 1)  # a clock that was ahead has destroyed nothing
    assert contents(conversations, "chat") == ["secret"]


@pytest.mark.parametrize("ending", ["", "clear", "again", "put off"])
def test_expired_conversation_is_purged_a_week_later(
    conversations: Conversations, store: str, at: Callable[[int], None], ending: str
) -> None:
    """A conversation that began again under the id stays, and so does one whose expiry was put off."""
    say(conversations, "chat", "secret text")
    conversations.set_summary(conversations.require("chat"), "A secret summary.", 1)
    expiry = timestamps.now() + 3600 * SECOND
    conversations.set_expiry("chat", expiry)
    if ending == "clear":
        conversations.clear("chat")
        say(conversations, "chat", "secret again")
    if ending == "put off":
        conversations.set_expiry("chat", expiry + 2 * WEEK)
    at(expiry)
    if ending == "again":
        say(conversations, "chat", "new")
        assert contents(conversations, "chat") == ["new"]
    generation = next(it["sk"] for it in items(conversations) if it["sk"].startswith(keys.EXPIRY)).split("#")[1]
    gone = stream_record(keys.expiries(conversations.tenant_id), keys.expiry(generation, "chat"), event="REMOVE")
    if ending != "again":  # a clock that is ahead
        at(expiry + WEEK - SECOND)
        assert deliver(purge_messages.handler, gone) == []
        assert "secret" in str(items(conversations)) or ending == "put off"
        due = next(it["expires_at"] for it in items(conversations) if it["sk"].startswith(keys.EXPIRY))
        assert due == (expiry + WEEK + (2 * WEEK if ending == "put off" else 0)) // SECOND + 60
    at(expiry + WEEK)
    assert deliver(purge_messages.handler, gone) == []
    for item in items(conversations):
        if item["sk"].startswith(keys.PURGE):
            assert deliver(purge_messages.handler, stream_record(item["pk"], item["sk"])) == []
    if ending == "put off":
        assert contents(conversations, "chat") == ["secret text"]
    else:
        assert "secret" not in str(items(conversations))
        assert (conversations.find("chat") is not None) == (ending == "again")


def test_expired_purge_waits_for_its_ttl(conversations: Conversations, store: str, tmp_path: Path) -> None:
    """DynamoDB deletes the expiry item; its record brings the purge."""
    say(conversations, "chat", "secret")
    past = timestamps.now() - WEEK - 3600 * SECOND
    conversations.set_expiry("chat", past)
    assert conversations.find("chat") is None
    definition = next(each for each in load().tables if each.name == conversations.table.name)
    with connect(store) as client:
        TtlSweeper(store, [definition]).sweep(client, definition)
    assert "secret" in str(items(conversations)), "a caller's clock that is behind destroys nothing"


# Subjects


def test_subject_is_of_the_conversation(conversations: Conversations) -> None:
    """It is given at the beginning or later, and another one than stored is a conflict that changes nothing."""
    conversations.get_or_create("first", "person:17")
    conversations.get_or_create("first", "person:17")
    conversations.get_or_create("first")
    say(conversations, "second", "a", subject="person:17")
    say(conversations, "third", "a")
    say(conversations, "third", "b", subject="person:17")
    say(conversations, "fourth", "a", subject="person:18")
    before = conversations.require("second")
    for refused in (
        lambda: conversations.get_or_create("second", "person:18"),
        lambda: say(conversations, "second", "b", subject="person:18"),
    ):
        with pytest.raises(Conflict, match="another subject") as raised:
            refused()
        assert raised.value.details == {"conversation_id": "second", "subject": "person:17"}
    assert conversations.require("second") == before
    assert conversations.list_ids(10, None, subject="person:17")[0] == ["first", "second", "third"]
    assert conversations.list_ids(10, None, "s", "person:17")[0] == ["second"]
    assert conversations.list_ids(10, None, subject="person:19") == ([], None)
    page = conversations.list_entries(2, None, subject="person:17")
    assert [each.subject for each in page.conversations] == ["person:17"] * 2
    assert conversations.list_ids(2, page.next_cursor, subject="person:17") == (["third"], None)
    conversations.delete("first")
    assert conversations.list_ids(10, None, subject="person:17")[0] == ["second", "third"]
    assert MessageHistory(conversations, "third").details(6).subject == "person:17"


def test_erased_subject_is_hidden_at_once_and_purged(conversations: Conversations) -> None:
    """Repeating the call tells how far it is. Nothing that is kept has the subject's name."""
    for name in ("one", "two", "three"):
        say(conversations, name, f"secret {name}", subject="person:17")
        conversations.set_summary(conversations.require(name), "A secret summary.", 1)
    say(conversations, "other", "mine", subject="person:18")
    erasure = conversations.subjects.erase("person:17", "admin")
    assert (erasure.status, erasure.subject, erasure.conversations_left) == ("erasing", "person:17", 3)
    assert conversations.list_ids(10, None) == (["other"], None)
    assert conversations.list_ids(10, None, subject="person:17") == ([], None)
    with pytest.raises(NotFound):
        MessageHistory(conversations, "one")
    say(conversations, "one", "begun again")
    say(conversations, "two", "of the same", subject="person:17")
    [work] = [item for item in items(conversations) if item["sk"].startswith(keys.ERASURE)]
    assert deliver(purge_messages.handler, stream_record(work["pk"], work["sk"])) == []
    for item in items(conversations):
        if item["sk"].startswith(keys.PURGE):
            assert deliver(purge_messages.handler, stream_record(item["pk"], item["sk"])) == []
    assert "secret" not in str(items(conversations))
    assert contents(conversations, "one") == ["begun again"]
    assert contents(conversations, "two") == ["of the same"]
    assert contents(conversations, "other") == ["mine"]
    erasure = conversations.subjects.erase("person:17", "admin")
    assert (erasure.status, erasure.conversations_left) == ("erasing", 1), "a new one"
    for _ in range(2):
        for item in items(conversations):
            if item["sk"].startswith((keys.ERASURE, keys.PURGE)):
                assert deliver(purge_messages.handler, stream_record(item["pk"], item["sk"])) == []
    erasure = conversations.subjects.erase("person:17", "admin")
    assert (erasure.status, erasure.conversations_left) == ("erased", 0)
    assert "person:17" not in str(items(conversations))
    assert conversations.subjects.erase("person:unknown", "admin").status == "erased"


def test_erasure_goes_on_until_no_conversation_is_left(
    conversations: Conversations, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each invocation deletes some, and changes the item, whose record brings the next."""
    monkeypatch.setattr(purge_messages, "_CONVERSATIONS_AT_ONCE", 2)
    for number in range(5):
        conversations.get_or_create(f"chat {number}".replace(" ", "_"), "person:17")
    left = [conversations.subjects.erase("person:17", "admin").conversations_left]
    [work] = [item for item in items(conversations) if item["sk"].startswith(keys.ERASURE)]
    while left[-1]:
        assert deliver(purge_messages.handler, stream_record(work["pk"], work["sk"])) == []
        left.append(conversations.subjects.erase("person:17", "admin").conversations_left)
    assert left == [5, 3, 1, 0]


def test_expired_conversation_of_an_erased_subject_is_erased_too(
    conversations: Conversations, at: Callable[[int], None]
) -> None:
    """It is hidden, and another conversation has taken its id."""
    say(conversations, "chat", "secret", subject="person:17")
    conversations.set_expiry("chat", timestamps.now() + SECOND)
    at(timestamps.now() + SECOND)
    say(conversations, "chat", "new")
    assert "secret" in str(items(conversations))
    conversations.subjects.erase("person:17", "admin")
    for _ in range(2):
        for item in items(conversations):
            if item["sk"].startswith((keys.ERASURE, keys.PURGE)):
                assert deliver(purge_messages.handler, stream_record(item["pk"], item["sk"])) == []
    assert "secret" not in str(items(conversations))
    assert contents(conversations, "chat") == ["new"]


def test_conversation_begun_just_before_the_erasure_is_erased(conversations: Conversations) -> None:
    """Its beginning and the replacement of the subject's key exclude each other."""
    conversations.get_or_create("old", "person:17")
    with another_caller(lambda: conversations.subjects.erase("person:17", "admin"), before="TransactWriteItems"):
        conversations.get_or_create("new", "person:17")
    assert conversations.list_ids(10, None, subject="person:17")[0] == ["new"]
    pages = conversations.table.query(keys.erasures(conversations.tenant_id), Keys.after(" "))
    [former] = [item["sk"].rpartition("#")[2] for page in pages for item in page]
    assert conversations.table.count(keys.subject_list(conversations.tenant_id, former), keys.SUBJECT_LIST) == 1


def test_deletion_of_an_erased_conversation_never_takes_its_successor(conversations: Conversations) -> None:
    say(conversations, "chat", "secret", subject="person:17")
    conversations.subjects.erase("person:17", "admin")
    key = next(it for it in items(conversations) if it["sk"].startswith(keys.ERASURE))["sk"].rpartition("#")[2]
    with another_caller(lambda: say(conversations, "chat", "new"), before="TransactWriteItems"):
        conversations.purge_subject(key, 10)
    assert contents(conversations, "chat") == ["new"]
