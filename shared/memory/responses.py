"""What several methods of memory-server answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class ConversationResult:
    """That it was done, and to which conversation."""

    status: Literal["success", "cleared", "deleted"]
    conversation_id: str


@dataclass(frozen=True, slots=True)
class SummaryResult:
    """The conversation's summary, empty where there is none."""

    summary: str
