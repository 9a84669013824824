"""The result of a question that is answered from documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from shared.knowledge.answering.models import DegradedStage


@dataclass(frozen=True, slots=True)
class ContextItem:
    """What the answer was made from; a page of the web bears its address in place of a document's id."""

    document_id: str
    snippet: str
    score: float
    source: Literal["web"] | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """What was found, what a model has read and written, and what was dropped on the way, if anything."""

    qdrant_hits: int
    llm_tokens_prompt: int
    llm_tokens_completion: int
    degraded: list[DegradedStage] | None = None


@dataclass(frozen=True, slots=True)
class KnowledgeAnswer:
    """The answer, whose [1] is the first of `context`; with no match, '' and nothing."""

    response: str
    context: list[ContextItem]
    usage: Usage
