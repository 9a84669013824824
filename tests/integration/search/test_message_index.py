"""The message index: what a search of messages finds, in which order, and what it never finds."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from shared.rpc.errors import Unavailable
from shared.search.embedding.e5 import E5
from shared.search.message_index import (
    IndexedMessage,
    MessageFilter,
    MessageHit,
    MessageIndex,
    MessageQuestion,
    MessageRef,
    SpokenText,
    rank_by_words,
)
from shared.search.store import Scope
from shared.search.store.server import connect
from tests.helpers.qdrant_server import running_qdrant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from infra.local.search_engine.embedded import EmbeddedVectorStore
    from shared.search.embedding import Comparison, Embedding

CHAT = [
    ("Ann", "Do you play an instrument?"),
    ("Ben", "Yes, since I was nine."),
    ("Ann", "My sister paints watercolours of the harbour."),
    ("Ben", "We moved to Porto in the spring."),
    ("Ann", "The bakery near the station sells almond cake."),
]


@pytest.fixture(scope="module")
def messages(e5: E5, store: EmbeddedVectorStore) -> MessageIndex:
    """Return the index that tests share. Each test has its own tenant."""
    return MessageIndex(e5, store)


def chat(
    lines: Sequence[tuple[str, str]] = CHAT, conversation: str = "chat", generation: str = "g", **more: Any
) -> list[IndexedMessage]:
    """Return the messages of a conversation."""
    spoken = [SpokenText("user", text, name) for name, text in lines]
    return [
        IndexedMessage(
            ref=MessageRef(generation, at + 1),
            conversation_id=conversation,
            role="user",
            content=each.content,
            at=f"2026-11-20T10:00:{at:02}.000Z",
            name=each.name,
            before=tuple(spoken[:at]),
            **more,
        )
        for at, each in enumerate(spoken)
    ]


def found(index: MessageIndex, tenant: str, text: str, **filters: Any) -> list[int]:
    """Return the numbers of the messages found, best first."""
    return [hit.ref.number for hit in hits(index, tenant, text, **filters)]


def hits(index: MessageIndex, tenant: str, text: str, **filters: Any) -> list[MessageHit]:
    return index.search(MessageQuestion(text, tenant, MessageFilter(**filters))).hits


def test_an_answer_is_found_by_the_words_of_its_question(messages: MessageIndex, tenant: str) -> None:
    """A message is read, and its words are counted, with the two messages before it."""
    alone = [replace(each, before=()) for each in chat(generation="alone")]
    messages.upsert(tenant, [*chat(), *alone], 1)
    scores = {hit.ref: hit.score for hit in hits(messages, tenant, "Who plays an instrument?")}
    assert scores[MessageRef("g", 2)] > scores[MessageRef("alone", 2)] + 0.1
    assert scores[MessageRef("g", 1)] == scores[MessageRef("alone", 1)]
    assert all(0 <= score <= 1 for score in scores.values())


def test_only_the_two_messages_before_are_read_with_a_message(messages: MessageIndex, tenant: str) -> None:
    fourth = chat()[3]
    messages.upsert(tenant, [fourth], 1)
    after_three = hits(messages, tenant, "instrument")
    messages.upsert(tenant, [replace(fourth, before=fourth.before[1:])], 1)
    assert hits(messages, tenant, "instrument") == after_three
    messages.upsert(tenant, [replace(fourth, before=fourth.before[2:])], 1)
    assert hits(messages, tenant, "instrument") != after_three


@pytest.mark.parametrize("remote", [False, True], ids=["embedded", "server"])
def test_filters_select_messages(messages: MessageIndex, e5: E5, tenant: str, *, remote: bool) -> None:
    """A search is of some conversations, one subject, some roles or a time, and never of another tenant."""
    with running_qdrant() as qdrant:
        index = MessageIndex(e5, connect(e5.space, qdrant.url, "kho-messages")) if remote else messages
        long = "device:kitchen:2026"
        first, second, third = chat()[3], chat(conversation=long, generation="h")[3], chat(generation="i")[3]
        second = replace(second, subject="person:17", role="assistant", at="2026-11-20T12:00:00+01:00")
        third = replace(third, ref=MessageRef("i", 7), conversation_id="chats", expires_at="2000-01-01T00:00:00Z")
        index.upsert(tenant, [first, second, third], 1)
        index.upsert(f"{tenant}-other", [replace(first, ref=MessageRef("g", 9))], 1)

        def conversations(**filters: Any) -> set[str]:
            return {hit.conversation_id for hit in hits(index, tenant, "Porto in spring", **filters)}

        assert conversations() == {"chat", long}, "the third has expired"
        assert conversations(conversation_id="chat") == {"chat"}
        for length in range(1, len(long) + 1):
            assert conversations(conversation_prefix=long[:length]) == {long}
        assert conversations(conversation_prefix="device:kitchen:2027") == set()
        assert conversations(conversation_prefix=f"{long}0") == set()
        assert conversations(conversation_prefix="c") == {"chat"}
        assert conversations(subject="person:17") == {long}
        assert conversations(roles=("assistant", "system")) == {long}
        assert conversations(roles=("assistant", "user")) == {"chat", long}
        assert conversations(since="2026-11-20T11:00:00Z") == {long}
        assert conversations(until="2026-11-20T11:00:00.000Z") == {"chat"}
        assert conversations(excluded_generations=("h",)) == {"chat"}
        assert [each.conversation_id for each in index.newest(tenant, MessageFilter(), 5)] == [long, "chat"]
        assert [each.ref.number for each in index.newest(f"{tenant}-other", MessageFilter(), 5)] == [9]
        index.set_fields(tenant, "h", subject="", expires_at="2000-01-01T00:00:00Z")
        index.set_fields(tenant, "i", subject="person:18")
        assert conversations() == {"chat", "chats"}
        assert conversations(subject="person:18") == {"chats"}


def test_a_late_writer_brings_no_removed_message_back(messages: MessageIndex, tenant: str) -> None:
    """A message that was removed stays so, even if a writer has read it before."""
    messages.upsert(tenant, chat(), 1)
    porto = MessageRef("g", 4)
    messages.remove(tenant, [porto], 2)
    messages.upsert(tenant, chat(), 1)
    assert porto.number not in found(messages, tenant, "Porto in spring")
    assert messages.holds(tenant, [porto, MessageRef("g", 1), MessageRef("g", 99)]) == {MessageRef("g", 1)}
    assert [each.ref.number for each in messages.newest(tenant, MessageFilter(), 9)] == [5, 3, 2, 1]
    cake = replace(chat()[4], before=chat()[4].before[1:3])
    messages.upsert(tenant, [cake], 2)
    without = hits(messages, tenant, "Porto")
    messages.upsert(tenant, chat(), 1)
    assert hits(messages, tenant, "Porto") == without, "an earlier reading does not replace a later one"


def test_nothing_is_left_of_a_generation_subject_or_tenant(
    messages: MessageIndex, store: EmbeddedVectorStore, tenant: str
) -> None:
    messages.upsert(tenant, chat(), 1)
    messages.upsert(tenant, chat(generation="h", subject="person:17"), 1)
    messages.upsert(tenant, chat(generation="i"), 1)
    messages.remove(tenant, [MessageRef("g", 4)], 2)
    assert messages.generations(tenant) == {(tenant, each) for each in "ghi"}
    messages.remove_generation(tenant, "g")
    messages.remove_subject(tenant, "person:17")
    assert messages.generations(tenant) == {(tenant, "i")}
    messages.remove_tenant(tenant)
    assert store.count(Scope(tenant)) == 0


def test_messages_that_are_not_indexed_have_the_same_scores(messages: MessageIndex, tenant: str) -> None:
    """A message is found by the next search, at the place that it will have."""
    messages.upsert(tenant, chat(), 1)
    question = MessageQuestion("Where did Ben move?", tenant)
    indexed = messages.search(question)
    both = messages.search(replace(question, unindexed=chat()[3:]))
    assert [hit.ref for hit in both.hits] == [hit.ref for hit in indexed.hits], "each is one hit"
    for one, other in zip(both.hits, indexed.hits, strict=True):
        assert one.score == pytest.approx(other.score, abs=0.01)
    fresh = messages.search(MessageQuestion("Where did Ben move?", f"{tenant}-new", unindexed=chat()))
    assert fresh.hits[0].ref.number == found(messages, tenant, "Where did Ben move?")[0] == 4


class Away(E5):
    """A model whose function does not answer."""

    def question(self, text: str) -> Embedding:
        raise Unavailable(text)

    def compare(self, question: str, texts: Sequence[str], before: Sequence[Sequence[str]]) -> list[Comparison]:
        raise Unavailable(f"{question} {texts} {before}")


def test_messages_are_found_by_words_without_the_model(
    messages: MessageIndex, store: EmbeddedVectorStore, tenant: str
) -> None:
    messages.upsert(tenant, chat()[:4], 1)
    ranking = MessageIndex(Away(), store).search(MessageQuestion("almond cake in Porto", tenant, unindexed=chat()[4:]))
    assert [hit.ref.number for hit in ranking.hits] == [5, 4]
    assert ranking.words_only
    assert not messages.search(MessageQuestion("almond cake", tenant)).words_only
    assert [hit.ref.number for hit in rank_by_words("almond cake in Porto", chat())] == [5, 4]


def test_a_question_without_diacritics_finds_what_has_some(messages: MessageIndex, tenant: str) -> None:
    lines = [("", "Cà phê sữa đá ngon nhất ở quán bà Năm."), ("", "The coffee machine is broken.")]
    messages.upsert(tenant, chat(lines), 1)
    asked: list[MessageRef] = []

    def texts(refs: Sequence[MessageRef]) -> list[str]:
        asked.extend(refs)
        return [lines[ref.number - 1][1] for ref in refs]

    plain, accented = (
        messages.search(MessageQuestion(text, tenant), texts).hits for text in ("ca phe sua da", "Cà phê sữa đá")
    )
    assert asked == [MessageRef("g", 1)]
    assert plain[0].ref.number == accented[0].ref.number == 1
    unrestored = messages.search(MessageQuestion("ca phe sua da", tenant)).hits
    assert plain[0].score > unrestored[0].score
    messages.search(MessageQuestion("coffee machine", tenant), texts)
    assert asked == [MessageRef("g", 1)], "messages without diacritics are not read"


def test_a_query_without_a_word_finds_nothing(messages: MessageIndex, tenant: str) -> None:
    messages.upsert(tenant, chat(), 1)
    for query in ("?! 🦊", "the", "và", "的"):
        assert hits(messages, tenant, query) == []
        assert rank_by_words(query, chat()) == []
