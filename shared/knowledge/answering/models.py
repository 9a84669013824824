"""What is asked, what it is answered from, and what is answered."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Format = Literal["markdown", "plain", "json"]
Part = Literal["answer_model", "reranker", "web_search"]
Reason = Literal["not_configured", "misconfigured", "unavailable", "out_of_time", "unusable", "cut_off"]


@dataclass(frozen=True, slots=True)
class AnswerRequest:
    """A question, and how it is to be answered; `language` is a tag such as vi-VN, or ''."""

    question: str
    tenant_id: str
    collection: str
    tags: tuple[str, ...] = ()
    top_k: int = 5
    language: str = ""
    format: Format = "markdown"
    with_web: bool = False


@dataclass(frozen=True, slots=True)
class AnswerSource:
    """A passage of a document, or of a page on the web, that the answer is made from."""

    id: str
    snippet: str
    score: float
    heading: str = ""
    is_prose: bool = True
    is_web: bool = False

    @property
    def text(self) -> str:
        """All that it says."""
        return f"{self.heading}\n{self.snippet}" if self.heading else self.snippet


@dataclass(frozen=True, slots=True)
class DegradedStage:
    """A part of the pipeline that did not do what it was to do, and why."""

    dropped: Part
    reason: Reason
    message: str


@dataclass(slots=True)
class GeneratedAnswer:
    """What was answered from which sources, numbered from 1 as the answer cites them, and what that took."""

    response: str = ""
    sources: list[AnswerSource] = field(default_factory=list)
    hits: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    degraded: list[DegradedStage] = field(default_factory=list)
