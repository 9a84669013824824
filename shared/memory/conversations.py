"""Creating, clearing, deleting and listing the conversations of one tenant, and counting their messages."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from shared.aws.dynamodb import ConditionFailed, Keys, Table, Write, optimistic_retry
from shared.memory import keys
from shared.memory.models import ConversationEntry, ConversationEntryPage
from shared.platform.clock import now
from shared.platform.telemetry import logger
from shared.rpc import cursor as cursors
from shared.rpc.errors import NotFound, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable

    from shared.aws.dynamodb import Item
    from shared.memory.models import Role

    GenerationWrites = Callable[[Item, str], list[Write]]

_ATTEMPTS: Final = 5
_COUNT_AFTER_MESSAGES: Final = 16
_COUNT_AT_ONCE: Final = 64
_PREVIEW_CHARACTERS: Final = 80
"""Few enough that a header stays in the one unit of DynamoDB that counting its message costs."""
_SECOND_PURGE_AFTER_SECONDS: Final = 120
"""Longer than any function runs: by then no writer can add a message to the old generation."""


@dataclass(frozen=True, slots=True)
class ConversationHeader:
    """The header of a conversation: its generation, the number of its last message, and a count of its messages.

    The numbers up to `counted_to` have a message each, except those in `gaps`: their writer failed or is at work.
    """

    generation: str
    last_number: int
    created_at: str
    updated_at: str
    preview: str | None = None
    counted_to: int = 0
    gaps: tuple[int, ...] = ()


class Conversations:
    """The conversations of one tenant."""

    def __init__(self, table: Table, tenant_id: str) -> None:
        self.table = table
        self.tenant_id = tenant_id

    def get_or_create(self, conversation_id: str | None) -> str:
        """Return the id of the conversation. Create it if it does not exist."""
        conversation_id = conversation_id or f"chat_{secrets.token_hex(12)}"
        if self.find(conversation_id) is None:
            self._create(conversation_id)
        return conversation_id

    def append(self, conversation_id: str, role: Role, content: str) -> None:
        """Append one message. It follows all messages that were acknowledged before."""
        # The number is taken before the message is written: a message acknowledged later has a greater one.
        header = self._next_number(conversation_id, content[:_PREVIEW_CHARACTERS])
        self.table.write(
            Write(
                "Put",
                {
                    "pk": keys.messages(self.tenant_id, header.generation),
                    "sk": keys.message(header.last_number),
                    "role": role,
                    "content": content,
                    "at": now(),
                },
            )
        )
        if header.last_number % _COUNT_AFTER_MESSAGES == 0:
            self._count_further(conversation_id, header)

    def set_summary(self, header: ConversationHeader, text: str, covers: int, *, replace: bool = True) -> None:
        """Store the summary of the messages up to number `covers`, in the generation of `header`.

        Without `replace`, raise ConditionFailed if there is a summary already.
        """
        item = {
            "pk": keys.messages(self.tenant_id, header.generation),
            "sk": keys.SUMMARY,
            "text": text,
            "covers": covers if text else 0,  # an empty summary covers no message
            "updated_at": now(),
        }
        write = Write("Put", item)
        if not replace:
            absent = "attribute_not_exists(pk) OR #text = :empty"
            write = Write("Put", item, condition=absent, names={"#text": "text"}, values={":empty": ""})
        self.table.write(write)

    def clear(self, conversation_id: str) -> None:
        """Delete the messages and the summary. Do nothing if the conversation does not exist."""
        self._end_generation(
            conversation_id,
            lambda header_key, generation: [
                Write(
                    "Update",
                    header_key,
                    expression="SET generation = :new, last_number = :none, updated_at = :now "
                    "REMOVE counted_to, gaps, preview",
                    condition="generation = :ended",
                    values={":new": _new_generation(), ":none": 0, ":ended": generation, ":now": now()},
                ),
            ],
        )

    def delete(self, conversation_id: str) -> None:
        """Delete the conversation with its messages and summary. Do nothing if it does not exist."""
        listing = {"pk": keys.conversations(self.tenant_id), "sk": conversation_id}
        self._end_generation(
            conversation_id,
            lambda header_key, generation: [
                Write("Delete", header_key, condition="generation = :ended", values={":ended": generation}),
                Write("Delete", listing),
            ],
        )

    def list_ids(self, limit: int, cursor: str | None, prefix: str = "") -> tuple[list[str], str | None]:
        """Return the conversation ids that begin with `prefix`, in order, and a cursor if more follow."""
        after = cursors.decode_sort_key(cursor) if cursor else " "
        bounds = Keys.beginning(prefix) if prefix and not cursor else Keys.after(after)
        pages = self.table.query(keys.conversations(self.tenant_id), bounds, limit=limit + 1)
        sort_keys = (item["sk"] for page in pages for item in page)
        ids = list(takewhile(lambda id_: id_.startswith(prefix), sort_keys))
        return ids[:limit], cursors.encode(ids[limit - 1]) if len(ids) > limit else None

    def list_entries(self, limit: int, cursor: str | None, prefix: str = "") -> ConversationEntryPage:
        """Return the conversations whose ids begin with `prefix`, in order, without those deleted meanwhile."""
        ids, next_cursor = self.list_ids(limit, cursor, prefix)
        header_keys = [(keys.conversation(self.tenant_id, id_), keys.HEADER) for id_ in ids]
        headers = {item["conversation_id"]: _header(item) for item in self.table.get_all(header_keys)}
        entries = [
            ConversationEntry(id_, header.created_at, header.updated_at, header.preview)
            for id_ in ids
            if (header := headers.get(id_))
        ]
        return ConversationEntryPage(entries, next_cursor)

    def find(self, conversation_id: str) -> ConversationHeader | None:
        """Return the header of a conversation, or None if it does not exist."""
        item = self.table.get(keys.conversation(self.tenant_id, conversation_id), keys.HEADER)
        return _header(item) if item else None

    def require(self, conversation_id: str) -> ConversationHeader:
        """Return the header of a conversation. Raise NotFound if it does not exist."""
        header = self.find(conversation_id)
        if header is None:
            raise NotFound(
                f"Conversation not found: {conversation_id}",
                details={"conversation_id": conversation_id},
                guidance="memory/get_or_create and memory/add_message create a conversation.",
            )
        return header

    def purge(self, generation: str) -> None:
        """Delete every item of a past generation."""
        self.table.delete_range(keys.messages(self.tenant_id, generation), Keys.after(" "))

    def _next_number(self, conversation_id: str, preview: str) -> ConversationHeader:
        """Take the number of the next message. Create the conversation if it does not exist."""
        increment = Write(
            "Update",
            self._header_key(conversation_id),
            expression="SET updated_at = :now, preview = :preview ADD last_number :one",
            condition="attribute_exists(pk)",
            values={":one": 1, ":now": now(), ":preview": preview},
        )

        def attempt() -> ConversationHeader:
            try:
                item = self.table.write(increment)
            except ConditionFailed:
                self._create(conversation_id)
                item = self.table.write(increment)
            return _header(item)

        exhausted = Unavailable("The conversation is being deleted repeatedly.")
        return optimistic_retry(attempt, attempts=_ATTEMPTS, exhausted=exhausted)

    def _count_further(self, conversation_id: str, header: ConversationHeader) -> None:
        """Count the next messages, so that no reader counts them again. Another writer continues after a failure."""
        first, last = header.counted_to + 1, min(header.last_number, header.counted_to + _COUNT_AT_ONCE)
        partition = keys.messages(self.tenant_id, header.generation)
        try:
            pages = self.table.query(partition, Keys.between(keys.message(first), keys.message(last)), fields=("sk",))
            present = {keys.number(item["sk"]) for page in pages for item in page}
            gaps = self.gaps(header) + [number for number in range(first, last + 1) if number not in present]
            self.table.write(
                Write(
                    "Update",
                    self._header_key(conversation_id),
                    expression="SET counted_to = :last, gaps = :gaps",
                    condition="generation = :generation AND (attribute_not_exists(counted_to) OR counted_to < :last)",
                    values={":generation": header.generation, ":last": last, ":gaps": gaps},
                )
            )
        except ConditionFailed:
            return  # a concurrent writer counted them, or the conversation was cleared
        except Unavailable as error:
            logger.warning("messages not counted yet", extra={"failure": error.message})

    def gaps(self, header: ConversationHeader) -> list[int]:
        """Return the counted numbers that still have no message."""
        partition = keys.messages(self.tenant_id, header.generation)
        return [
            number
            for number in header.gaps
            if not self.table.count(partition, Keys.between(keys.message(number), keys.message(number)))
        ]

    def _create(self, conversation_id: str) -> None:
        header = self._header_key(conversation_id) | {
            "conversation_id": conversation_id,
            "generation": _new_generation(),
            "last_number": 0,
            "created_at": now(),
            "updated_at": now(),
        }
        listing = {"pk": keys.conversations(self.tenant_id), "sk": conversation_id}
        try:
            self.table.transact(Write("Put", header, condition="attribute_not_exists(pk)"), Write("Put", listing))
        except ConditionFailed:
            return  # a concurrent call created it

    def _end_generation(self, conversation_id: str, header_writes: GenerationWrites) -> None:
        """Carry out `header_writes` on the current generation, and queue its items for deletion."""

        def attempt() -> None:
            header = self.find(conversation_id)
            if header is None:
                return
            purge = {
                "pk": keys.purges(self.tenant_id),
                "sk": f"{keys.PURGE}{header.generation}",
                "expires_at": int(time.time()) + _SECOND_PURGE_AFTER_SECONDS,
            }
            writes = header_writes(self._header_key(conversation_id), header.generation)
            self.table.transact(*writes, Write("Put", purge))

        exhausted = Unavailable("The conversation is being cleared repeatedly.")
        optimistic_retry(attempt, attempts=_ATTEMPTS, exhausted=exhausted)

    def _header_key(self, conversation_id: str) -> dict[str, str]:
        return {"pk": keys.conversation(self.tenant_id, conversation_id), "sk": keys.HEADER}


def _header(item: Item) -> ConversationHeader:
    gaps = tuple(map(int, item.get("gaps", ())))
    return ConversationHeader(
        generation=item["generation"],
        last_number=int(item["last_number"]),
        created_at=item["created_at"],
        updated_at=item["updated_at"],
        preview=item.get("preview"),
        counted_to=int(item.get("counted_to", 0)),
        gaps=gaps,
    )


def _new_generation() -> str:
    return secrets.token_hex(16)
