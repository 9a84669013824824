"""The data types of conversations in requests and results."""

from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, Field

from shared.rpc.field_messages import worded

MAX_CONTENT_BYTES: Final = 256 * 1024


def _within_content_bytes(text: str) -> str:
    size = len(text.encode("utf-8"))
    if size > MAX_CONTENT_BYTES:
        raise ValueError(f"should have at most {MAX_CONTENT_BYTES} bytes of UTF-8, not {size}")
    return text


_PRINTED: Final = worded(r"^[^\s\ufeff\x00-\x1f\x7f-\x9f]+$", "without spaces and control characters")
Role = Literal["user", "assistant", "system"]
Language = Literal["vi", "en"]
Content = Annotated[str, Field(min_length=1, max_length=MAX_CONTENT_BYTES), AfterValidator(_within_content_bytes)]
SummaryText = Annotated[str, Field(max_length=MAX_CONTENT_BYTES), AfterValidator(_within_content_bytes)]
ConversationId = Annotated[
    str,
    Field(
        min_length=1,
        max_length=200,
        pattern=_PRINTED,
        examples=["chat_xxx"],
    ),
]
Speaker = Annotated[str, Field(min_length=1, max_length=100, examples=["Lan"])]
Subject = Annotated[str, Field(min_length=1, max_length=200, pattern=_PRINTED, examples=["person:17"])]
MessageId = Annotated[str, Field(min_length=1, max_length=100)]


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One turn of a conversation."""

    role: Role
    content: str


@dataclass(frozen=True, slots=True)
class MessagePage:
    """A page of messages, oldest first, with `next_cursor` if more follow."""

    messages: list[ChatMessage]
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True)
class OldMessages:
    """A page of the messages before the recent ones, with the number of all messages of the conversation."""

    messages: list[ChatMessage]
    total_count: int
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True)
class NumberedMessage:
    """One turn of a conversation, with its id, number and time, and the name of its speaker if it has one."""

    message_id: str
    number: int
    role: Role
    content: str
    at: str
    name: str | None = None


@dataclass(frozen=True, slots=True)
class NumberedMessagePage:
    """A page of messages, newest first, with `next_cursor` if older ones follow."""

    messages: Annotated[list[NumberedMessage], Field(description="the messages, newest first")]
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True)
class FoundMessage:
    """A message that a search found, with its score in 0-1 if the search had a query."""

    conversation_id: str
    message_id: str
    number: int
    role: Role
    content: str
    at: str
    name: str | None = None
    score: float | None = None
    neighbours: Annotated[
        list[NumberedMessage] | None, Field(description="the messages before and after it, in their order")
    ] = None


@dataclass(frozen=True, slots=True)
class FoundMessages:
    """Messages that a search found, best first, or newest first without a query."""

    messages: Annotated[list[FoundMessage], Field(description="the messages that were found")]
    not_yet_indexed: Annotated[
        list[FoundMessage] | None,
        Field(
            description="newer messages with words of the query, if too many wait for the index to be ranked together"
        ),
    ] = None
    degraded: Annotated[str | None, Field(description="what the search did without, in words")] = None


@dataclass(frozen=True, slots=True)
class ConversationEntry:
    """A conversation in a list, with the beginning of its newest message, its subject and its expiry if it has them."""

    conversation_id: str
    created_at: str
    updated_at: str
    preview: str | None = None
    subject: str | None = None
    expires_at: str | None = None


@dataclass(frozen=True, slots=True)
class ConversationEntryPage:
    """A page of conversations in order of their ids, with `next_cursor` if more follow."""

    conversations: list[ConversationEntry]
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True)
class ConversationSummary:
    """The summary of the messages up to number `covers`."""

    text: str
    covers: int
    updated_at: str

    def as_object(self) -> dict[str, Any]:
        """Return the summary as it appears in a resource."""
        return {"text": self.text, "updated_at": self.updated_at}


@dataclass(frozen=True, slots=True)
class ConversationDetails:
    """A conversation without its messages. A summary that was never stored is absent."""

    conversation_id: str
    created_at: str
    updated_at: str
    total_count: int
    summary: ConversationSummary | None = None
    subject: str | None = None
    expires_at: str | None = None


@dataclass(frozen=True, slots=True)
class ConversationResult:
    """A confirmation with the id of the conversation."""

    status: Literal["success", "cleared", "deleted"]
    conversation_id: str


@dataclass(frozen=True, slots=True)
class MessageDeletion:
    """A confirmation with the id of the deleted message."""

    status: Literal["deleted"]
    conversation_id: str
    message_id: str


@dataclass(frozen=True, slots=True)
class ConversationExpiry:
    """A confirmation with the time from which the conversation is not found."""

    status: Literal["success"]
    conversation_id: str
    expires_at: str


@dataclass(frozen=True, slots=True)
class SubjectErasure:
    """The state of the erasure of a subject: `erasing` until no item of its conversations is stored."""

    status: Literal["erasing", "erased"]
    subject: str
    conversations_left: int


@dataclass(frozen=True, slots=True)
class SummaryResult:
    """The summary of a conversation, empty if there is none."""

    summary: str
