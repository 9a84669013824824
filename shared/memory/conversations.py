"""Creating, clearing, deleting and listing the conversations of one tenant, and counting their messages."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final

from shared.aws.dynamodb import ConditionFailed, Keys, Table, Write, from_item, optimistic_retry
from shared.memory import keys
from shared.memory.models import ConversationEntry, ConversationEntryPage
from shared.memory.subjects import Subjects
from shared.platform.clock import now
from shared.platform.config import config
from shared.platform.telemetry import logger
from shared.rpc import cursor as cursors
from shared.rpc import timestamps
from shared.rpc.errors import Conflict, NotFound, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from shared.aws.dynamodb import Item
    from shared.memory.models import ConversationSummary, Role

    GenerationWrites = Callable[["ConversationHeader"], list[Write]]

_ATTEMPTS: Final = 5
_COUNT_AFTER_MESSAGES: Final = 16
_COUNT_AT_ONCE: Final = 64
_PREVIEW_CHARACTERS: Final = 80
"""Few enough that a header stays in the one unit of DynamoDB that counting its message costs."""
_SECOND_PURGE_AFTER_SECONDS: Final = 120
"""Longer than any function runs: by then no writer can add a message to the old generation."""
_PURGE_DELAY_SECONDS: Final = 7 * 86_400
"""From the expiry of a conversation until it is deleted, so that a clock that is ahead destroys nothing."""
_CLOCK_DIFFERENCE_SECONDS: Final = 60
"""Clocks differ: without the minute, the expiry item could go before the purge is due."""
_SECOND: Final = 1_000_000
_LISTED_PAGES: Final = 10
"""The pages that one call reads for a page of a list, if most of their conversations are hidden."""
_MARKED_SECONDS: Final = 30 * 86_400
"""The time for which a message is marked as not indexed if no worker ever indexes it."""
_UNEXPIRED: Final = "(attribute_not_exists(expiry) OR expiry > :time)"


@dataclass(frozen=True, slots=True)
class ConversationHeader:
    """The header of a conversation: its generation, the number of its last message, and a count of its messages.

    The numbers up to `counted_to` have a message each, or the record of its deletion, except those in `gaps`: their
    writer failed or is at work. From `expiry` on, or when its subject has another key, the conversation is hidden.
    """

    conversation_id: str
    generation: str
    last_number: int
    created_at: str
    updated_at: str
    preview: str | None = None
    counted_to: int = 0
    gaps: tuple[int, ...] = ()
    deletions: int = 0
    subject: str | None = None
    subject_key: str | None = None
    expiry: int | None = None
    """Microseconds since 1970."""
    purge_at: int | None = None
    """Seconds since 1970."""


class Conversations:
    """The conversations of one tenant."""

    def __init__(self, table: Table, tenant_id: str) -> None:
        self.table = table
        self.tenant_id = tenant_id
        self.subjects = Subjects(table, tenant_id)

    def get_or_create(self, conversation_id: str | None, subject: str | None = None) -> str:
        """Return the id of the conversation. Create it if it does not exist."""
        id_ = conversation_id or f"chat_{secrets.token_hex(12)}"
        busy = Unavailable("The conversation is being deleted repeatedly.")
        optimistic_retry(lambda: self._open(id_, self.stored(id_), subject), attempts=_ATTEMPTS, exhausted=busy)
        return id_

    def append(
        self, conversation_id: str, role: Role, content: str, *, name: str | None = None, subject: str | None = None
    ) -> None:
        """Append one message. It follows all messages that were acknowledged before."""
        # The number is taken before the message is written: a message acknowledged later has a greater one.
        header = self._next_number(conversation_id, preview_of(content), subject)
        item = {
            "pk": keys.messages(self.tenant_id, header.generation),
            "sk": keys.message(header.last_number),
            "role": role,
            "content": content,
            "at": now(),
        } | ({"name": name} if name else {})
        if config().has_message_index:
            expires_at = int(time.time()) + _MARKED_SECONDS
            marker = {"conversation": conversation_id, "expires_at": expires_at}
            self.table.put_all(
                [item | {"conversation": conversation_id}, marker | unindexed_marker(self.tenant_id, item)]
            )
        else:
            self.table.write(Write("Put", item))
        if header.last_number % _COUNT_AFTER_MESSAGES == 0:
            self._count_further(conversation_id, header)

    def set_summary(self, header: ConversationHeader, text: str, covers: int) -> None:
        """Store the summary of the messages up to number `covers`, in the generation of `header`."""
        self.table.write(Write("Put", self._summary_item(header, text, covers)))

    def renew_summary(
        self, header: ConversationHeader, text: str, covers: int, previous: ConversationSummary | None
    ) -> None:
        """Replace the summary `previous`.

        Raise ConditionFailed if there is another one, or if a message was deleted after `header` was read.
        """
        condition = "attribute_not_exists(pk) OR #text = :text"
        values: dict[str, Any] = {":text": previous.text if previous else ""}
        if previous and previous.text:
            condition, values = "#text = :text AND covers = :covers", values | {":covers": previous.covers}
        condition_of_header, counter = unchanged(header)
        self.table.transact(
            Write(
                "ConditionCheck", self.header_key(header.conversation_id), condition=condition_of_header, values=counter
            ),
            Write(
                "Put",
                self._summary_item(header, text, covers),
                condition=condition,
                names={"#text": "text"},
                values=values,
            ),
        )

    def set_expiry(self, conversation_id: str, expiry: int) -> None:
        """Hide the conversation from `expiry` on, in microseconds since 1970. It is purged a week later."""
        purge_at = max(expiry, timestamps.now()) // _SECOND + _PURGE_DELAY_SECONDS

        def attempt() -> None:
            header = self.require(conversation_id)
            update = Write(
                "Update",
                self.header_key(conversation_id),
                expression="SET expiry = :expiry, purge_at = :purge_at",
                condition="generation = :generation",
                values={":expiry": expiry, ":purge_at": purge_at, ":generation": header.generation},
            )
            expiry_item = self._expiry_item(conversation_id, header.generation, purge_at)
            self.table.transact(update, expiry_item, *self._fields_writes(header))

        busy = Unavailable("The conversation is being cleared repeatedly.")
        optimistic_retry(attempt, attempts=_ATTEMPTS, exhausted=busy)

    def clear(self, conversation_id: str) -> None:
        """Delete the messages and the summary. Do nothing if the conversation does not exist."""

        def writes(header: ConversationHeader) -> list[Write]:
            generation = _new_generation()
            update = Write(
                "Update",
                self.header_key(conversation_id),
                expression="SET generation = :new, last_number = :none, updated_at = :now "
                "REMOVE counted_to, gaps, deletions, preview",
                condition="generation = :ended",
                values={":new": generation, ":none": 0, ":ended": header.generation, ":now": now()},
            )
            expiry = [self._expiry_item(conversation_id, generation, header.purge_at)] if header.purge_at else []
            return [update, *expiry]

        self._end_generation(conversation_id, writes)

    def delete(self, conversation_id: str) -> None:
        """Delete the conversation with its messages and summary. Do nothing if it does not exist."""
        self._end_generation(conversation_id, self._deletion_writes)

    def list_ids(
        self, limit: int, cursor: str | None, prefix: str = "", subject: str | None = None
    ) -> tuple[list[str], str | None]:
        """Return the conversation ids that begin with `prefix`, in order, and a cursor if more follow."""
        headers, next_cursor = self._list(limit, cursor, prefix, subject)
        return [header.conversation_id for header in headers], next_cursor

    def list_entries(
        self, limit: int, cursor: str | None, prefix: str = "", subject: str | None = None
    ) -> ConversationEntryPage:
        """Return the conversations whose ids begin with `prefix`, in order, and only those of `subject` if given."""
        headers, next_cursor = self._list(limit, cursor, prefix, subject)
        entries = [
            ConversationEntry(
                header.conversation_id,
                header.created_at,
                header.updated_at,
                header.preview,
                header.subject,
                timestamps.optional_iso(header.expiry),
            )
            for header in headers
        ]
        return ConversationEntryPage(entries, next_cursor)

    def _list(
        self, limit: int, cursor: str | None, prefix: str, subject: str | None
    ) -> tuple[list[ConversationHeader], str | None]:
        partition = keys.conversations(self.tenant_id)
        if subject is not None:
            subject_key = self.subjects.key(subject)
            if subject_key is None:
                return [], None
            partition = keys.subject_list(self.tenant_id, subject_key)
        headers: list[ConversationHeader] = []
        for _ in range(_LISTED_PAGES):
            ids, cursor = self._list_page(partition, limit - len(headers), cursor, prefix)
            visible = self.visible(ids)
            headers += [visible[id_] for id_ in ids if id_ in visible and subject in (None, visible[id_].subject)]
            if cursor is None or len(headers) == limit:
                break
        return headers, cursor

    def _list_page(self, partition: str, limit: int, cursor: str | None, prefix: str) -> tuple[list[str], str | None]:
        after = cursors.decode_sort_key(cursor) if cursor else " "
        bounds = Keys.beginning(prefix) if prefix and not cursor else Keys.after(after)
        pages = self.table.query(partition, bounds, limit=limit + 1)
        sort_keys = (item["sk"] for page in pages for item in page)
        ids = list(takewhile(lambda id_: id_.startswith(prefix), sort_keys))
        return ids[:limit], cursors.encode(ids[limit - 1]) if len(ids) > limit else None

    def visible(self, conversation_ids: Iterable[str]) -> dict[str, ConversationHeader]:
        """Return the headers of those conversations that exist."""
        header_keys = [(keys.conversation(self.tenant_id, id_), keys.HEADER) for id_ in conversation_ids]
        headers = [_header(item) for item in self.table.get_all(header_keys)]
        subject_keys = self.subjects.all_keys({header.subject for header in headers if header.subject})
        return {
            header.conversation_id: header
            for header in headers
            if not _is_expired(header)
            and (not header.subject or subject_keys.get(header.subject) == header.subject_key)
        }

    def find(self, conversation_id: str) -> ConversationHeader | None:
        """Return the header of a conversation, or None if it does not exist."""
        header = self.stored(conversation_id)
        return header if header and self._exists(header) else None

    def stored(self, conversation_id: str) -> ConversationHeader | None:
        """Return the stored header of a conversation, which may be hidden."""
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
        """Delete every item of a past generation, and its messages from the index."""
        self.table.delete_range(keys.messages(self.tenant_id, generation), Keys.after(" "))
        markers = keys.unindexed(self.tenant_id, keys.shard_of(generation))
        for page in self.table.query(markers, Keys.after(" "), fields=("pk", "sk")):
            self.table.delete_all((item["pk"], item["sk"]) for item in page if f"#{generation}#" in item["sk"])
        if config().has_message_index:
            from shared.search.message_index import message_index

            message_index().remove_generation(self.tenant_id, generation)

    def purge_expired(self, conversation_id: str, generation: str) -> None:
        """Delete a conversation whose expiry is a week ago, and the items of this generation if it is not the last."""
        header = self.stored(conversation_id)
        if header is None or header.generation != generation:
            self.purge(generation)
        elif header.purge_at and header.purge_at <= timestamps.now() // _SECOND:
            self._end_generation(conversation_id, self._deletion_writes, lambda it: it.generation == generation)
        elif header.purge_at:  # the expiry was put off just before, or the clock of the TTL is ahead
            self.table.write(self._expiry_item(conversation_id, generation, header.purge_at))

    def purge_subject(self, subject_key: str, limit: int) -> bool:
        """Delete the conversations of a former key of a subject, up to `limit`. Return True if no more are left."""
        partition = keys.subject_list(self.tenant_id, subject_key)
        for page in self.table.query(partition, keys.SUBJECT_LIST, limit=limit):
            for item in page:
                if item["sk"].startswith(keys.FORMER):
                    self.purge(item["sk"].removeprefix(keys.FORMER))
                header = self.stored(item["sk"])
                if header and header.subject_key == subject_key:
                    self.purge(header.generation)
                    self._end_generation(item["sk"], self._deletion_writes, lambda it: it.subject_key == subject_key)
                else:  # the conversation began again, or is deleted
                    self.table.write(Write("Delete", {"pk": partition, "sk": item["sk"]}))
        return not self.table.count(partition, keys.SUBJECT_LIST)

    def header_key(self, conversation_id: str) -> dict[str, str]:
        """Return the key of a conversation's header."""
        return {"pk": keys.conversation(self.tenant_id, conversation_id), "sk": keys.HEADER}

    def _exists(self, header: ConversationHeader) -> bool:
        return not _is_expired(header) and not self._is_erased(header)

    def _is_erased(self, header: ConversationHeader) -> bool:
        return header.subject is not None and self.subjects.key(header.subject) != header.subject_key

    def _next_number(self, conversation_id: str, preview: str, subject: str | None) -> ConversationHeader:
        """Take the number of the next message. Create the conversation if it does not exist."""
        of_subject = " AND subject = :subject" if subject else ""

        def increment() -> ConversationHeader:
            values = {":one": 1, ":now": now(), ":time": timestamps.now(), ":preview": preview}
            update = Write(
                "Update",
                self.header_key(conversation_id),
                expression="SET updated_at = :now, preview = :preview ADD last_number :one",
                condition=f"attribute_exists(pk) AND {_UNEXPIRED}{of_subject}",
                values=values | ({":subject": subject} if subject else {}),
                returns_refusing_item=True,
            )
            return _header(self.table.write(update))

        def attempt() -> ConversationHeader:
            try:
                header: ConversationHeader | None = increment()
            except ConditionFailed as refused:
                header = _header(refused.item) if refused.item else None
            else:
                if header and self._exists(header):
                    return header
            self._open(conversation_id, header, subject)
            return increment()

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
                    self.header_key(conversation_id),
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

    def _open(self, conversation_id: str, header: ConversationHeader | None, subject: str | None) -> None:
        """Make sure that the conversation whose stored header is given exists, and belongs to the subject if given."""
        if header is None or not self._exists(header):
            self._begin(conversation_id, header, subject)
        elif subject and header.subject is None:
            self._give_subject(header, subject)
        elif subject and header.subject != subject:
            raise Conflict(
                "The conversation belongs to another subject.",
                details={"conversation_id": conversation_id, "subject": header.subject},
                guidance="Leave 'subject' out, or choose another conversation_id for this subject.",
            )

    def _begin(self, conversation_id: str, hidden: ConversationHeader | None, subject: str | None) -> None:
        """Create the conversation, or replace a hidden one. Raise ConditionFailed if a concurrent call does."""
        header = self.header_key(conversation_id) | {
            "conversation_id": conversation_id,
            "generation": _new_generation(),
            "last_number": 0,
            "created_at": now(),
            "updated_at": now(),
        }
        writes = [Write("Put", {"pk": keys.conversations(self.tenant_id), "sk": conversation_id})]
        if subject:
            subject_key, claim = self.subjects.claim(subject)
            header |= {"subject": subject, "subject_key": subject_key}
            writes += [
                claim,
                Write("Put", {"pk": keys.subject_list(self.tenant_id, subject_key), "sk": conversation_id}),
            ]
        condition, values = "attribute_not_exists(pk)", {}
        if hidden:
            condition, values = "generation = :ended", {":ended": hidden.generation}
            writes += self._purge_writes(hidden)
        self.table.transact(Write("Put", header, condition=condition, values=values), *writes)

    def _give_subject(self, header: ConversationHeader, subject: str) -> None:
        """Make a conversation without a subject one of this subject."""
        subject_key, claim = self.subjects.claim(subject)
        self.table.transact(
            Write(
                "Update",
                self.header_key(header.conversation_id),
                expression="SET subject = :subject, subject_key = :key",
                condition="generation = :generation AND attribute_not_exists(subject)",
                values={":subject": subject, ":key": subject_key, ":generation": header.generation},
            ),
            claim,
            Write("Put", {"pk": keys.subject_list(self.tenant_id, subject_key), "sk": header.conversation_id}),
            *self._fields_writes(header),
        )

    def _deletion_writes(self, header: ConversationHeader) -> list[Write]:
        id_ = header.conversation_id
        listings = [{"pk": keys.conversations(self.tenant_id), "sk": id_}]
        if header.subject_key:
            listings.append({"pk": keys.subject_list(self.tenant_id, header.subject_key), "sk": id_})
        ended = {":ended": header.generation}
        return [
            Write("Delete", self.header_key(id_), condition="generation = :ended", values=ended),
            *(Write("Delete", each) for each in listings),
        ]

    def _end_generation(
        self, conversation_id: str, writes: GenerationWrites, applies: Callable[[ConversationHeader], object] = bool
    ) -> None:
        """Carry out `writes` on the current generation if it `applies`, and queue its items for deletion."""

        def attempt() -> None:
            header = self.stored(conversation_id)
            if header is None or not applies(header):
                return
            expiry = {"pk": keys.expiries(self.tenant_id), "sk": keys.expiry(header.generation, conversation_id)}
            ended = [Write("Delete", expiry)] if header.purge_at else []
            self.table.transact(*writes(header), *ended, self._purge_item(header.generation))

        exhausted = Unavailable("The conversation is being cleared repeatedly.")
        optimistic_retry(attempt, attempts=_ATTEMPTS, exhausted=exhausted)

    def _purge_writes(self, hidden: ConversationHeader) -> list[Write]:
        """Build what the purge of a hidden conversation needs when another takes its place."""
        if self._is_erased(hidden):
            return [self._purge_item(hidden.generation)]
        if hidden.subject_key:  # the subject may be erased before the expired one is purged
            entry = {"pk": keys.subject_list(self.tenant_id, hidden.subject_key), "sk": keys.former(hidden.generation)}
            return [Write("Put", entry)]
        return []

    def _purge_item(self, generation: str) -> Write:
        key = {"pk": keys.purges(self.tenant_id), "sk": f"{keys.PURGE}{generation}"}
        return Write("Put", key | {"expires_at": int(time.time()) + _SECOND_PURGE_AFTER_SECONDS})

    def _expiry_item(self, conversation_id: str, generation: str, purge_at: int) -> Write:
        key = {"pk": keys.expiries(self.tenant_id), "sk": keys.expiry(generation, conversation_id)}
        return Write("Put", key | {"expires_at": purge_at + _CLOCK_DIFFERENCE_SECONDS})

    def _fields_writes(self, header: ConversationHeader) -> list[Write]:
        """Build the write that has the subject and the expiry of a conversation set in the index."""
        if not (header.last_number and config().has_message_index):
            return []
        key = {"pk": keys.fields(self.tenant_id), "sk": keys.fields_of(header.generation, header.conversation_id)}
        return [Write("Put", key | {"at": now()})]

    def _summary_item(self, header: ConversationHeader, text: str, covers: int) -> Item:
        return {
            "pk": keys.messages(self.tenant_id, header.generation),
            "sk": keys.SUMMARY,
            "text": text,
            "covers": covers if text else 0,  # an empty summary covers no message
            "updated_at": now(),
        }


def unindexed_marker(tenant_id: str, message: Item) -> Item:
    """Return the key of the item that marks a message as not indexed."""
    generation = message["pk"].rpartition("#")[2]
    sk = keys.unindexed_message(message["at"], generation, keys.number(message["sk"]))
    return {"pk": keys.unindexed(tenant_id, keys.shard_of(generation)), "sk": sk}


def preview_of(content: str) -> str:
    """Return the beginning of a message that lists show."""
    return content[:_PREVIEW_CHARACTERS]


def _header(item: Item) -> ConversationHeader:
    stored = from_item(ConversationHeader, item)
    return replace(stored, gaps=tuple(stored.gaps))


def _is_expired(header: ConversationHeader) -> bool:
    return header.expiry is not None and header.expiry <= timestamps.now()


def unchanged(header: ConversationHeader) -> tuple[str, dict[str, Any]]:
    """Return the condition that no message of the conversation was deleted since `header` was read."""
    values: dict[str, Any] = {":generation": header.generation}
    condition = "generation = :generation"
    if header.deletions:
        return f"{condition} AND deletions = :deletions", values | {":deletions": header.deletions}
    return f"{condition} AND attribute_not_exists(deletions)", values


def _new_generation() -> str:
    return secrets.token_hex(16)
