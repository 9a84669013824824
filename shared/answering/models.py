"""Data models of a question, its sources and its answer."""

from dataclasses import dataclass, field
from typing import Literal

Format = Literal["markdown", "plain", "json"]
Part = Literal["answer_model", "reranker", "web_search"]
Reason = Literal["not_configured", "misconfigured", "unavailable", "out_of_time", "unusable", "cut_off"]


@dataclass(frozen=True, slots=True)
class AnswerRequest:
    """A question and the form of its answer. `language` is a tag such as vi-VN, or ''."""

    question: str
    tenant_id: str
    collection: str
    tags: tuple[str, ...] = ()
    metadata: tuple[tuple[str, ...], ...] = ()
    top_k: int = 5
    language: str = ""
    format: Format = "markdown"
    with_web: bool = False


@dataclass(frozen=True, slots=True)
class AnswerSource:
    """A passage of a document or a web page that the answer is based on."""

    id: str
    snippet: str
    score: float
    heading: str = ""
    is_prose: bool = True
    is_web: bool = False

    @property
    def text(self) -> str:
        """The heading and the snippet."""
        return f"{self.heading}\n{self.snippet}" if self.heading else self.snippet


@dataclass(frozen=True, slots=True)
class DegradedStage:
    """A stage of the pipeline that failed or was skipped, and the reason."""

    dropped: Part
    reason: Reason
    message: str


@dataclass(slots=True)
class GeneratedAnswer:
    """An answer, its sources in citation order from 1, and its costs."""

    response: str = ""
    sources: list[AnswerSource] = field(default_factory=list)
    hits: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    degraded: list[DegradedStage] = field(default_factory=list)
    language: str = ""
