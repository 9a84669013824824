"""Reads of a conversation: its recent, old or all messages, and its summary."""

from dataclasses import asdict

from shared.aws.dynamodb import Item, Keys
from shared.memory import keys
from shared.memory.conversations import Conversations
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

    def recent(self, count: int) -> list[ChatMessage]:
        """Return the last `count` messages, oldest first, or the newest of them that fit in a response."""
        newest_first = [_message(item) for item in reversed(self._last(count))]
        messages, _ = take_page(newest_first, None, asdict, SizeBudget())
        return messages[::-1]

    def page(self, limit: int | None, cursor: str | None, budget: SizeBudget | None = None) -> MessagePage:
        """Return the messages from `cursor` on, oldest first: up to `limit`, or as many as fit."""
        return MessagePage(*self._read(self._start(cursor), keys.LAST_NUMBER, limit, budget or SizeBudget()))

    def newest(self, limit: int, cursor: str | None) -> NumberedMessagePage:
        """Return the messages before `cursor`, newest first: up to `limit`, or as many as fit."""
        before = keys.LAST_NUMBER if cursor is None else self._start(cursor)
        bounds = Keys.between(keys.message(1), keys.message(before))
        pages = self._table.query(self._partition, bounds, descending=True, limit=limit + 1)
        messages = (_numbered(item) for page in pages for item in page)
        page, rest = take_page(messages, limit, asdict, SizeBudget())
        return NumberedMessagePage(page, None if rest is None else cursors.encode(self.header.generation, rest.number))

    def details(self, keep_recent: int) -> ConversationDetails:
        """Return the conversation without its messages."""
        total = self._total(self._last(keep_recent))
        times = self.header.created_at, self.header.updated_at
        return ConversationDetails(self.conversation_id, *times, total, self.summary())

    def old(
        self, keep_recent: int, limit: int | None, cursor: str | None, *, leave_out_summarized: bool
    ) -> OldMessages:
        """Return the messages before the last `keep_recent`, optionally without those that the summary covers."""
        summary = self.summary() if leave_out_summarized else None
        recent = self._last(keep_recent)
        boundary = _first_number(recent)
        first = max(self._start(cursor), summary.covers + 1 if summary else 1)
        messages, next_cursor = self._read(first, boundary - 1, limit, SizeBudget())
        return OldMessages(messages, self._total(recent), next_cursor)

    def summary(self) -> ConversationSummary | None:
        """Return the stored summary, or None if there is none."""
        item = self._table.get(self._partition, keys.SUMMARY)
        return ConversationSummary(item["text"], int(item["covers"]), item["updated_at"]) if item else None

    def oldest(self, keep_recent: int, max_bytes: int) -> tuple[list[ChatMessage], int]:
        """Return the messages before the last `keep_recent` that fit in `max_bytes`, and the number of the last one."""
        before = _first_number(self._last(keep_recent))
        chosen: list[ChatMessage] = []
        last, left = 0, max_bytes
        for page in self._table.query(self._partition, Keys.between(keys.message(0), keys.message(before - 1))):
            for item in page:
                left -= len(item["content"].encode("utf-8"))
                if left < 0 and chosen:
                    return chosen, last
                chosen.append(_message(item))
                last = keys.number(item["sk"])
        return chosen, last

    def _last(self, count: int) -> list[Item]:
        pages = self._table.query(self._partition, Keys.beginning(keys.MESSAGE), descending=True, limit=count)
        return [item for page in pages for item in page][::-1]

    def _total(self, recent: list[Item]) -> int:
        """Return the number of all messages. Count in the store only those that no writer has counted."""
        counted_to = self.header.counted_to
        counted = counted_to - len(self.conversations.gaps(self.header))
        boundary = _first_number(recent)
        if counted_to + 1 < boundary:
            counted += self._table.count(
                self._partition, Keys.between(keys.message(counted_to + 1), keys.message(boundary - 1))
            )
        return counted + sum(keys.number(item["sk"]) > counted_to for item in recent)

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
        bounds = Keys.between(keys.message(first), keys.message(last))
        pages = self._table.query(self._partition, bounds, limit=None if limit is None else limit + 1)
        items, rest = take_page(
            (item for page in pages for item in page), limit, lambda item: asdict(_message(item)), budget
        )
        next_cursor = None if rest is None else cursors.encode(self.header.generation, keys.number(rest["sk"]))
        return [_message(item) for item in items], next_cursor


def _first_number(items: list[Item]) -> int:
    return keys.number(items[0]["sk"]) if items else 1


def _numbered(item: Item) -> NumberedMessage:
    return NumberedMessage(keys.number(item["sk"]), item["role"], item["content"], item["at"])


def _message(item: Item) -> ChatMessage:
    return ChatMessage(item["role"], item["content"])
