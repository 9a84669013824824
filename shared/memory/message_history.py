"""What is read of a conversation: its recent, old and all messages, and its summary."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from shared.dynamodb import Keys, Write
from shared.memory import keys
from shared.memory.conversations import now
from shared.memory.models import ChatMessage, ConversationSummary, MessagePage, OldMessages
from shared.rpc import cursor as cursors
from shared.rpc.response_size import MAX_PAGE_BYTES, answer_bytes

if TYPE_CHECKING:
    from shared.dynamodb import Item
    from shared.memory.conversations import Conversations


class MessageHistory:
    """The messages and the summary of one conversation, as it was when this was made."""

    def __init__(self, conversations: Conversations, conversation_id: str) -> None:
        header = conversations.require(conversation_id)
        self.generation = header.generation
        self.last_number = header.last_number
        self._table = conversations.table
        self._partition = keys.messages(conversations.tenant_id, header.generation)

    def recent(self, count: int) -> list[ChatMessage]:
        """The last `count` messages, oldest first; of those that an answer cannot hold, the newest."""
        room = SizeBudget()
        newest_first = itertools.takewhile(room.try_add, map(_message, reversed(self._last(count))))
        return list(newest_first)[::-1]

    def page(self, limit: int | None, cursor: str | None, *, beside: Any = "", nested: int = 0) -> MessagePage:
        """All messages from `cursor` on, oldest first: `limit` of them, or as many as an answer holds `beside` more."""
        messages, more = self._read(self._start(cursor), keys.LAST_NUMBER, limit, SizeBudget(beside, nested=nested))
        return MessagePage(messages, more)

    def old(
        self, keep_recent: int, limit: int | None, cursor: str | None, *, leave_out_summarized: bool
    ) -> OldMessages:
        """Those before the last `keep_recent` messages, without those that the summary covers if so wished."""
        summary = self.summary() if leave_out_summarized else None
        recent = self._last(keep_recent)
        boundary = keys.number(recent[0]["sk"]) if recent else 1
        first = max(self._start(cursor), summary.covers + 1 if summary else 1)
        messages, more = self._read(first, boundary - 1, limit, SizeBudget())
        before = self._table.count(self._partition, Keys.between(keys.message(0), keys.message(boundary - 1)))
        return OldMessages(messages, before + len(recent), more)

    def summary(self) -> ConversationSummary | None:
        """The stored summary."""
        item = self._table.get(self._partition, keys.SUMMARY)
        return ConversationSummary(item["text"], int(item["covers"]), item["updated_at"]) if item else None

    def set_summary(self, text: str, covers: int, *, replace: bool = True) -> None:
        """Let `text` stand for the messages up to number `covers`; without `replace`, raise if there is a summary."""
        item = {
            "pk": self._partition,
            "sk": keys.SUMMARY,
            "text": text,
            "covers": covers if text else 0,  # an empty summary tells of nothing
            "updated_at": now(),
        }
        if replace:
            self._table.write(Write("Put", item))
            return
        unless = Write(
            "Put",
            item,
            condition="attribute_not_exists(pk) OR #text = :empty",
            names={"#text": "text"},
            values={":empty": ""},
        )
        self._table.write(unless)

    def oldest(self, before: int, max_bytes: int) -> tuple[list[ChatMessage], int]:
        """The oldest messages of those before number `before` that fit, and the number of the last of them."""
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

    def recent_boundary(self, keep_recent: int) -> int:
        """The number of the first of the last `keep_recent` messages."""
        recent = self._last(keep_recent)
        return keys.number(recent[0]["sk"]) if recent else 1

    def _last(self, count: int) -> list[Item]:
        pages = self._table.query(self._partition, Keys.beginning(keys.MESSAGE), descending=True, limit=count)
        return [item for page in pages for item in page][::-1]

    def _start(self, cursor: str | None) -> int:
        if cursor is None:
            return 1
        generation, number = cursors.decode(cursor, str, int)
        if generation != self.generation or not 1 <= number <= keys.LAST_NUMBER:
            raise cursors.stale()
        return int(number)

    def _read(self, first: int, last: int, limit: int | None, room: SizeBudget) -> tuple[list[ChatMessage], str | None]:
        """Messages from number `first` to `last` as far as there is room, and a cursor to the first that is left."""
        chosen: list[ChatMessage] = []
        if first > last:
            return chosen, None
        bounds = Keys.between(keys.message(first), keys.message(last))
        for page in self._table.query(self._partition, bounds, limit=None if limit is None else limit + 1):
            for item in page:
                message = _message(item)
                if len(chosen) == limit or not room.try_add(message):
                    return chosen, cursors.encode(self.generation, keys.number(item["sk"]))
                chosen.append(message)
        return chosen, None


class SizeBudget:
    """What is left of an answer for messages, beside what else it holds; a single message always fits."""

    def __init__(self, beside: Any = "", *, nested: int = 0) -> None:
        self._nested = nested
        self._left = MAX_PAGE_BYTES - answer_bytes(beside, nested=nested)

    def try_add(self, message: ChatMessage) -> bool:
        """Whether the answer holds this message besides those before."""
        self._left -= answer_bytes({"role": message.role, "content": message.content}, nested=self._nested)
        return self._left >= 0


def _message(item: Item) -> ChatMessage:
    return ChatMessage(item["role"], item["content"])
