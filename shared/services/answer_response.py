"""Result of a question that is answered from documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from shared.knowledge.answering.models import DegradedStage


@dataclass(frozen=True, slots=True)
class ContextItem:
    """A source of the answer. A web page's `document_id` is its address."""

    document_id: str
    snippet: str
    score: float
    source: Literal["web"] | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """The number of hits, the model's token counts, and the stages that failed or were skipped."""

    qdrant_hits: int
    llm_tokens_prompt: int
    llm_tokens_completion: int
    degraded: list[DegradedStage] | None = None


@dataclass(frozen=True, slots=True)
class KnowledgeAnswer:
    """The answer, which cites the first item of `context` as [1]. Without sources both are empty."""

    response: str
    context: list[ContextItem]
    usage: Usage
