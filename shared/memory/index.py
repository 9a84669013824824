"""Indexing of messages, by the worker of the table's stream and by `kho reindex`.

A message is indexed with the two messages before it. What is read is checked against the header afterwards: a
conversation that was ended meanwhile leaves the index again, and one whose subject or expiry has changed gets the new
ones. The header's counter of deletions orders writers, so that none brings back what another has removed.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Final

from shared.aws.dynamodb import ConditionFailed, Write
from shared.memory import keys
from shared.memory.conversations import unindexed_marker
from shared.memory.message_history import is_message, message_slots
from shared.rpc import timestamps
from shared.search.message_index import CONTEXT_MESSAGES, IndexedMessage, MessageRef, SpokenText, message_index

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from shared.aws.dynamodb import Item
    from shared.memory.conversations import ConversationHeader, Conversations

_BATCH: Final = 100


@dataclass(slots=True)
class IndexWork:
    """Messages of one tenant to be indexed, and deleted ones to be removed, by the revision at which they were read."""

    conversations: Conversations
    headers: list[ConversationHeader] = field(default_factory=list)
    messages: defaultdict[int, list[IndexedMessage]] = field(default_factory=lambda: defaultdict(list))
    removed: defaultdict[int, list[MessageRef]] = field(default_factory=lambda: defaultdict(list))
    markers: list[tuple[str, str]] = field(default_factory=list)

    def add(self, generation: str, numbers: Iterable[int]) -> None:
        """Read these messages of a generation, those before them, and those after a deletion."""
        wanted = sorted(numbers)
        partition = keys.messages(self.conversations.tenant_id, generation)
        places = ((partition, keys.message(number)) for number in wanted)
        items = self.conversations.table.get_all(places, ("conversation",))
        for conversation_id in {item["conversation"] for item in items if "conversation" in item}:
            header = self.conversations.stored(conversation_id)
            if header and header.generation == generation:
                self.add_messages(header, wanted)

    def add_messages(self, header: ConversationHeader, numbers: Sequence[int]) -> None:
        """Read these messages of a conversation whose header was read before."""
        self.headers.append(header)
        revision = header.deletions + 1
        items = [item for first, last in _runs(numbers) for item in self._slots(header, first, last)]
        wanted = {keys.number(item["sk"]) for item in items if is_message(item)}
        for item in items:
            marker = unindexed_marker(self.conversations.tenant_id, item)
            self.markers.append((marker["pk"], marker["sk"]))
            if not is_message(item):
                self.removed[revision].append(_ref(header, item))
                following = self._slots(header, keys.number(item["sk"]) + 1, keys.LAST_NUMBER, CONTEXT_MESSAGES)
                wanted |= {keys.number(each["sk"]) for each in following if is_message(each)}
        for first, last in _runs(sorted(wanted)):
            before = list(filter(is_message, self._slots(header, 1, first - 1, CONTEXT_MESSAGES, descending=True)))[
                ::-1
            ]
            for item in filter(is_message, self._slots(header, first, last)):
                self.messages[revision].append(indexed_message(header, item, before))
                before = [*before, item][-CONTEXT_MESSAGES:]

    def _slots(
        self, header: ConversationHeader, first: int, last: int, count: int | None = None, *, descending: bool = False
    ) -> Iterator[Item]:
        partition = keys.messages(self.conversations.tenant_id, header.generation)
        return message_slots(self.conversations.table, partition, first, last, count, descending=descending)

    def run(self) -> None:
        """Write to the index. Raise `Unavailable` if it does not answer."""
        tenant_id, index = self.conversations.tenant_id, message_index()
        for revision, messages in self.messages.items():
            index.upsert(tenant_id, messages, revision)
        for revision, refs in self.removed.items():
            index.remove(tenant_id, refs, revision)
        for header in self.headers:
            current = self.conversations.stored(header.conversation_id)
            if current is None or current.generation != header.generation:
                index.remove_generation(tenant_id, header.generation)
            elif (current.subject, current.expiry) != (header.subject, header.expiry):
                set_fields(self.conversations, current)
        self.conversations.table.delete_all(self.markers)


def set_fields(conversations: Conversations, header: ConversationHeader) -> None:
    """Set the subject and the expiry of a conversation's messages in the index."""
    expires_at = timestamps.optional_iso(header.expiry) or ""
    message_index().set_fields(
        conversations.tenant_id,
        header.generation,
        subject=keys.indexed_subject(header.subject or ""),
        expires_at=expires_at,
    )


def set_queued_fields(conversations: Conversations, sk: str) -> None:
    """Set the fields of a conversation that were queued, and remove it from the queue if they are unchanged."""
    key = {"pk": keys.fields(conversations.tenant_id), "sk": sk}
    item = conversations.table.get(**key)
    if item is None:
        return
    generation, _, conversation_id = sk.removeprefix(keys.FIELDS).partition("#")
    header = conversations.stored(conversation_id)
    if header and header.generation == generation:
        set_fields(conversations, header)
    with suppress(ConditionFailed):
        conversations.table.write(Write("Delete", key, "", "#at = :at", {":at": item["at"]}, {"#at": "at"}))


def rebuild_conversation(conversations: Conversations, conversation_id: str, *, force: bool) -> bool:
    """Index the messages of a conversation that are not, or all with `force`. Return True if there were any."""
    header = conversations.stored(conversation_id)
    done = False
    for first in range(1, (header.last_number if header else 0) + 1, _BATCH):
        assert header
        numbers = range(first, min(first + _BATCH, header.last_number + 1))
        refs = [MessageRef(header.generation, number) for number in numbers]
        indexed = set() if force else message_index().holds(conversations.tenant_id, refs)
        missing = [ref.number for ref in refs if ref not in indexed]
        work = IndexWork(conversations)
        if missing:
            work.add_messages(header, missing)
            work.run()
        done |= bool(work.messages)
        header = conversations.stored(conversation_id)
        if header is None:
            break
    return done


def indexed_message(header: ConversationHeader, item: Item, before: Iterable[Item]) -> IndexedMessage:
    """Return a message as it is indexed and searched."""
    return IndexedMessage(
        _ref(header, item),
        header.conversation_id,
        item["role"],
        item["content"],
        item["at"],
        item.get("name", ""),
        tuple(SpokenText(each["role"], each["content"], each.get("name", "")) for each in before),
        keys.indexed_subject(header.subject or ""),
        timestamps.optional_iso(header.expiry) or "",
    )


def _ref(header: ConversationHeader, item: Item) -> MessageRef:
    return MessageRef(header.generation, keys.number(item["sk"]))


def _runs(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last of numbers that follow each other."""
    for _, run in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]):
        followers = [number for _, number in run]
        yield followers[0], followers[-1]
