"""Result of a question that is answered from documents, and its Markdown rendering."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from shared.knowledge.answering.models import DegradedStage
from shared.knowledge.rendering import quote


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


def render_answer(answer: KnowledgeAnswer) -> str:
    """Render the answer and its sources. Sources are quoted, so that none can pass for a part of the answer."""
    if not answer.context:
        return "No document is relevant to this question."
    parts = [answer.response]
    for number, each in enumerate(answer.context, start=1):
        where = " (web)" if each.source else ""
        parts.append(f"[{number}] {each.document_id}{where} · {each.score:.2f}\n{quote(each.snippet)}")
    parts += [each.message for each in answer.usage.degraded or []]
    return "\n\n".join(parts)
