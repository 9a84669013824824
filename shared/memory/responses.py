"""Results that several methods of memory-server share."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class ConversationResult:
    """A confirmation with the id of the conversation."""

    status: Literal["success", "cleared", "deleted"]
    conversation_id: str


@dataclass(frozen=True, slots=True)
class SummaryResult:
    """The summary of a conversation, empty if there is none."""

    summary: str
