"""Deletion of single messages.

A record of who deleted the message, and when, takes its place. It keeps the number, so that counts go on, and none of
the text. Each deletion raises the header's counter of deletions, on which concurrent writers of summaries and of the
index depend: what they have read may hold the text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shared.aws.dynamodb import Write, optimistic_retry
from shared.memory import keys
from shared.memory.conversations import preview_of, unchanged
from shared.memory.message_history import MessageHistory, is_message
from shared.memory.message_ids import number_of
from shared.platform.clock import now
from shared.rpc.errors import NotFound, Unavailable

if TYPE_CHECKING:
    from shared.aws.dynamodb import Item
    from shared.memory.conversations import Conversations


def delete_message(conversations: Conversations, conversation_id: str, message_id: str, deleted_by: str) -> None:
    """Delete a message, and the summary that covers it. Do nothing if the message is already deleted."""

    def attempt() -> None:
        history = MessageHistory(conversations, conversation_id)
        number = number_of(message_id, history.header.generation)
        message = history.item(number) if number else None
        if number is None or message is None:
            raise NotFound(
                "Message not found.",
                details={"message_id": message_id},
                guidance="memory/list_messages and memory/search give the ids of messages.",
            )
        if is_message(message):
            conversations.table.transact(*_writes(history, message, number, deleted_by))

    busy = Unavailable("The conversation is being changed repeatedly.")
    optimistic_retry(attempt, exhausted=busy)


def _writes(history: MessageHistory, message: Item, number: int, deleted_by: str) -> list[Write]:
    place = {"pk": message["pk"], "sk": message["sk"]}
    tombstone = place | {
        "conversation": history.conversation_id,
        "at": message["at"],
        "deleted_at": now(),
        "deleted_by": deleted_by,
    }
    writes = [_header_write(history, message), Write("Put", tombstone)]
    summary = history.summary()
    if summary and summary.covers >= number:
        writes.append(Write("Delete", place | {"sk": keys.SUMMARY}))
    return writes


def _header_write(history: MessageHistory, message: Item) -> Write:
    """Build the write that counts the deletion, and replaces a preview that shows the message."""
    header = history.header
    condition, values = unchanged(header)
    expression, values = "ADD deletions :one", values | {":one": 1}
    if header.preview == preview_of(message["content"]):
        others = [each["content"] for each in history.newest_items(2) if each["sk"] != message["sk"]]
        expression += " SET preview = :preview" if others else " REMOVE preview"
        if others:
            values[":preview"] = preview_of(others[0])
        condition += " AND preview = :shown"
        values[":shown"] = header.preview
    return Write("Update", history.header_key, expression=expression, condition=condition, values=values)
