"""The conversations of one tenant: created, cleared, deleted, listed."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from shared.dynamodb import ConditionFailed, Keys, Table, Write
from shared.memory import keys
from shared.rpc import cursor as cursors
from shared.rpc.errors import NotFound, Unavailable
from shared.rpc.strict_json import is_encodable

if TYPE_CHECKING:
    from collections.abc import Callable

    from shared.dynamodb import Item
    from shared.memory.models import Role

    EndingWrites = Callable[[Item, str], list[Write]]

_ATTEMPTS: Final = 5
_PURGED_AGAIN_AFTER_SECONDS: Final = 120
"""Longer than any function lives: by then, no message of the old generation is still on its way."""


@dataclass(frozen=True, slots=True)
class ConversationHeader:
    """What stands for a conversation: its generation, and the number given to its last message."""

    generation: str
    last_number: int


class Conversations:
    """The conversations of one tenant."""

    def __init__(self, table: Table, tenant_id: str) -> None:
        self.table = table
        self.tenant_id = tenant_id

    def get_or_create(self, conversation_id: str | None) -> str:
        """The id of the conversation, which exists from now on."""
        conversation_id = conversation_id or f"chat_{secrets.token_hex(12)}"
        if self.find(conversation_id) is None:
            self._create(conversation_id)
        return conversation_id

    def append(self, conversation_id: str, role: Role, content: str) -> None:
        """Append one message; it comes after all that were acknowledged before."""
        header = self._numbered(conversation_id)
        # The number is given first: a message that is acknowledged later always bears a greater one.
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

    def clear(self, conversation_id: str) -> None:
        """Leave the conversation without messages and summary; one that does not exist has none."""
        self._end_generation(
            conversation_id,
            lambda header_key, ended: [
                Write(
                    "Update",
                    header_key,
                    expression="SET generation = :new, last_number = :none, updated_at = :now",
                    condition="generation = :ended",
                    values={":new": _new_generation(), ":none": 0, ":ended": ended, ":now": now()},
                ),
            ],
        )

    def delete(self, conversation_id: str) -> None:
        """Leave nothing of the conversation."""
        listing = {"pk": keys.conversations(self.tenant_id), "sk": conversation_id}
        self._end_generation(
            conversation_id,
            lambda header_key, ended: [
                Write("Delete", header_key, condition="generation = :ended", values={":ended": ended}),
                Write("Delete", listing),
            ],
        )

    def list_ids(self, limit: int, cursor: str | None, prefix: str = "") -> tuple[list[str], str | None]:
        """The ids of the tenant's conversations that begin with `prefix`, in order, and a cursor where more follow."""
        after = cursors.decode(cursor, str)[0] if cursor else " "
        if not _is_key(after):
            raise cursors.stale()
        wanted = Keys.beginning(prefix) if prefix and not cursor else Keys.after(after)
        pages = self.table.query(keys.conversations(self.tenant_id), wanted, limit=limit + 1)
        found = (item["sk"] for page in pages for item in page)
        ids = list(takewhile(lambda each: each.startswith(prefix), found))
        return ids[:limit], cursors.encode(ids[limit - 1]) if len(ids) > limit else None

    def find(self, conversation_id: str) -> ConversationHeader | None:
        """The conversation's header, if it exists."""
        item = self.table.get(keys.conversation(self.tenant_id, conversation_id), keys.HEADER)
        return ConversationHeader(item["generation"], int(item["last_number"])) if item else None

    def require(self, conversation_id: str) -> ConversationHeader:
        """The conversation's header, which must exist."""
        header = self.find(conversation_id)
        if header is None:
            raise NotFound(
                f"Conversation not found: {conversation_id}",
                details={"conversation_id": conversation_id},
                guidance="memory/get_or_create and memory/add_message create a conversation.",
            )
        return header

    def purge(self, generation: str) -> None:
        """Delete every item of a generation that is over."""
        partition = keys.messages(self.tenant_id, generation)
        for page in self.table.query(partition, Keys.after(" ")):
            self.table.delete_all((item["pk"], item["sk"]) for item in page)

    def _numbered(self, conversation_id: str) -> ConversationHeader:
        """Give the next message its number, creating the conversation where it does not exist."""
        numbering = Write(
            "Update",
            self._header_key(conversation_id),
            expression="SET updated_at = :now ADD last_number :one",
            condition="attribute_exists(pk)",
            values={":one": 1, ":now": now()},
        )
        for _ in range(_ATTEMPTS):
            try:
                item = self.table.write(numbering)
            except ConditionFailed:
                self._create(conversation_id)
            else:
                return ConversationHeader(item["generation"], int(item["last_number"]))
        raise Unavailable("The conversation is being deleted over and over.")

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
            return  # somebody else created it just now

    def _end_generation(self, conversation_id: str, writes: EndingWrites) -> None:
        for _ in range(_ATTEMPTS):
            header = self.find(conversation_id)
            if header is None:
                return
            purge = {
                "pk": keys.purges(self.tenant_id),
                "sk": f"{keys.PURGE}{header.generation}",
                "expires_at": int(time.time()) + _PURGED_AGAIN_AFTER_SECONDS,
            }
            ending = writes(self._header_key(conversation_id), header.generation)
            try:
                self.table.transact(*ending, Write("Put", purge))
            except ConditionFailed:
                continue  # somebody else ended this generation; end theirs
            return
        raise Unavailable("The conversation is being cleared over and over.")

    def _header_key(self, conversation_id: str) -> dict[str, str]:
        return {"pk": keys.conversation(self.tenant_id, conversation_id), "sk": keys.HEADER}


def now() -> str:
    """This moment, as times are given everywhere."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _new_generation() -> str:
    return secrets.token_hex(16)


def _is_key(text: str) -> bool:
    return is_encodable(text) and 0 < len(text.encode("utf-8")) <= 1024
