"""Reads of a conversation: its recent, old or all messages, and its summary."""

from collections.abc import Iterator

from shared.aws.dynamodb import Item, Keys, Table
from shared.memory import keys
from shared.memory.conversations import Conversations
from shared.memory.message_ids import message_id
from shared.memory.models import (
    ChatMessage,
    ConversationDetails,
    ConversationSummary,
    MessagePage,
    NumberedMessage,
    NumberedMessagePage,
    OldMessages,
)
from shared.rpc import cursor as cursors
from shared.rpc import timestamps
from shared.rpc.response_size import SizeBudget, take_page


class MessageHistory:
    """The messages and the summary of a conversation, in the generation that was current on construction."""

    def __init__(self, conversations: Conversations, conversation_id: str) -> None:
        header = conversations.require(conversation_id)
        self.conversation_id = conversation_id
        self.header = header
        self.conversations = conversations
        self._table = conversations.table
        self._partition = keys.messages(conversations.tenant_id, header.generation)

    @property
    def header_key(self) -> dict[str, str]:
        """The key of the conversation's header."""
        return self.conversations.header_key(self.conversation_id)

    def recent(self, count: int) -> list[ChatMessage]:
        """Return the last `count` messages, oldest first, or the newest of them that fit in a response."""
        newest_first = (_message(item) for item in self.newest_items(count))
        messages, _ = take_page(newest_first, None, SizeBudget())
        return messages[::-1]

    def newest_items(self, count: int) -> list[Item]:
        """Return the items of the last `count` messages, newest first."""
        return [item for item in self._slots(1, keys.LAST_NUMBER, count, descending=True) if is_message(item)]

    def item(self, number: int) -> Item | None:
        """Return the item of a message, or of its deletion."""
        return self._table.get(self._partition, keys.message(number))

    def page(self, limit: int | None, cursor: str | None, budget: SizeBudget | None = None) -> MessagePage:
        """Return the messages from `cursor` on, oldest first: up to `limit`, or as many as fit."""
        return MessagePage(*self._read(self._start(cursor), keys.LAST_NUMBER, limit, budget or SizeBudget()))

    def newest(self, limit: int, cursor: str | None) -> NumberedMessagePage:
        """Return the messages before `cursor`, newest first: up to `limit`, or as many as fit."""
        before = keys.LAST_NUMBER if cursor is None else self._start(cursor)
        slots = self._slots(1, before, limit + 1, descending=True)
        messages = (self._numbered(item) for item in slots if is_message(item))
        page, rest = take_page(messages, limit, SizeBudget())
        return NumberedMessagePage(page, None if rest is None else cursors.encode(self.header.generation, rest.number))

    def details(self, keep_recent: int) -> ConversationDetails:
        """Return the conversation without its messages."""
        total = self._total(self._recent_slots(keep_recent))
        header = self.header
        times = header.created_at, header.updated_at
        expires_at = timestamps.optional_iso(header.expiry)
        return ConversationDetails(self.conversation_id, *times, total, self.summary(), header.subject, expires_at)

    def old(
        self, keep_recent: int, limit: int | None, cursor: str | None, *, leave_out_summarized: bool
    ) -> OldMessages:
        """Return the messages before the last `keep_recent`, optionally without those that the summary covers."""
        summary = self.summary() if leave_out_summarized else None
        recent = self._recent_slots(keep_recent)
        boundary = _first_number(recent)
        first = max(self._start(cursor), summary.covers + 1 if summary else 1)
        messages, next_cursor = self._read(first, boundary - 1, limit, SizeBudget())
        return OldMessages(messages, self._total(recent), next_cursor)

    def summary(self) -> ConversationSummary | None:
        """Return the stored summary, or None if there is none."""
        item = self._table.get(self._partition, keys.SUMMARY)
        return ConversationSummary(item["text"], int(item["covers"]), item["updated_at"]) if item else None

    def oldest(self, covered: int, keep_recent: int, max_bytes: int) -> tuple[list[ChatMessage], int]:
        """Return the messages after number `covered` and before the last `keep_recent` that fit in `max_bytes`.

        The number of the last one comes with them.
        """
        before = _first_number(self._recent_slots(keep_recent))
        chosen: list[ChatMessage] = []
        last, left = covered, max_bytes
        for item in filter(is_message, self._slots(covered + 1, before - 1)):
            left -= len(item["content"].encode("utf-8"))
            if left < 0 and chosen:
                break
            chosen.append(_message(item))
            last = keys.number(item["sk"])
        return chosen, last

    def _slots(self, first: int, last: int, count: int | None = None, *, descending: bool = False) -> Iterator[Item]:
        return message_slots(self._table, self._partition, first, last, count, descending=descending)

    def _recent_slots(self, count: int) -> list[Item]:
        """Return the last `count` messages and the deletions among them, oldest first."""
        return list(self._slots(1, keys.LAST_NUMBER, count, descending=True))[::-1]

    def _total(self, recent: list[Item]) -> int:
        """Return the number of all messages. Count in the store only those that no writer has counted."""
        counted_to = self.header.counted_to
        counted = counted_to - len(self.conversations.gaps(self.header))
        boundary = _first_number(recent)
        if counted_to + 1 < boundary:
            counted += self._table.count(
                self._partition, Keys.between(keys.message(counted_to + 1), keys.message(boundary - 1))
            )
        counted += sum(keys.number(item["sk"]) > counted_to for item in recent)
        return counted - self.header.deletions

    def _numbered(self, item: Item) -> NumberedMessage:
        number = keys.number(item["sk"])
        id_ = message_id(self.header.generation, number)
        return NumberedMessage(id_, number, item["role"], item["content"], item["at"], item.get("name"))

    def _start(self, cursor: str | None) -> int:
        if cursor is None:
            return 1
        generation, number = cursors.decode(cursor, str, int)
        if generation != self.header.generation or not 1 <= number <= keys.LAST_NUMBER:
            raise cursors.stale()
        return int(number)

    def _read(
        self, first: int, last: int, limit: int | None, budget: SizeBudget
    ) -> tuple[list[ChatMessage], str | None]:
        """Return the messages from number `first` to `last` that fit, and a cursor to the first that does not."""
        if first > last:
            return [], None
        slots = self._slots(first, last, None if limit is None else limit + 1)
        items, rest = take_page(filter(is_message, slots), limit, budget, _message)
        next_cursor = None if rest is None else cursors.encode(self.header.generation, keys.number(rest["sk"]))
        return [_message(item) for item in items], next_cursor


def message_slots(  # noqa: PLR0913 - a range of a partition
    table: Table, partition: str, first: int, last: int, count: int | None = None, *, descending: bool = False
) -> Iterator[Item]:
    """Yield the messages from number `first` to `last`, and the deletions among them, up to `count` messages."""
    while first <= last:
        bounds = Keys.between(keys.message(first), keys.message(last))
        limit, read = count, 0
        for page in table.query(partition, bounds, descending=descending, limit=limit):
            for item in page:
                yield item
                read += 1
                if count is not None and is_message(item):
                    count -= 1
                number = keys.number(item["sk"])
                first, last = (first, number - 1) if descending else (number + 1, last)
        if limit is None or read < limit or not count:
            return


def is_message(item: Item) -> bool:
    """Return False for the record of a deletion, which stands at the place of the message."""
    return "deleted_at" not in item


def _first_number(items: list[Item]) -> int:
    return keys.number(items[0]["sk"]) if items else 1


def _message(item: Item) -> ChatMessage:
    return ChatMessage(item["role"], item["content"])
