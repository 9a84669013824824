"""The data types of experiences in requests and results."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Final

from pydantic import AfterValidator, Field

from shared.rpc.whitespace import NOT_BLANK, is_blank, not_blank

MAX_TITLE: Final = 500
MAX_TEXT: Final = 20_000
MAX_KEYWORD: Final = 100
MAX_KEYWORDS: Final = 50


def _normalize(keyword: str) -> str:
    return keyword.strip().lower()  # lower-casing lengthens a few letters, such as İ


def _keyword(text: str) -> str:
    if is_blank(text) or len(_normalize(text)) > MAX_KEYWORD:
        raise ValueError(f"should have 1 to {MAX_KEYWORD} characters")
    return text


Title = Annotated[
    str,
    Field(
        min_length=1,
        max_length=MAX_TITLE,
        json_schema_extra=NOT_BLANK,
        description="The problem in one line, in words that others would search for.",
        examples=["React useState not updating state"],
    ),
    AfterValidator(not_blank),
]
Text = Annotated[str, Field(min_length=1, max_length=MAX_TEXT, json_schema_extra=NOT_BLANK), AfterValidator(not_blank)]
ContextText = Annotated[str, Field(max_length=MAX_TEXT)]
Keyword = Annotated[
    str,
    AfterValidator(_keyword),
    # Surrounding whitespace does not count, which JSON Schema cannot express.
    Field(json_schema_extra={"minLength": 1, "maxLength": MAX_KEYWORD, **NOT_BLANK}),
]
Keywords = Annotated[list[Keyword], Field(max_length=MAX_KEYWORDS)]
ExperienceId = Annotated[str, Field(min_length=1, max_length=64, examples=["550e8400-e29b-41d4-a716-446655440000"])]


def normalize_keywords(keywords: Iterable[str]) -> list[str]:
    """Trim and lower-case keywords, and remove duplicates."""
    return list(dict.fromkeys(map(_normalize, keywords)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperienceReport:
    """The description of a problem and its solution."""

    title: str
    problem_description: str
    root_cause: str | None = None
    solution: str
    context: str | None = None
    keywords: list[str]


@dataclass(frozen=True, slots=True)
class Experience:
    """An experience in its current state; `deleted_at` is set if it is deleted."""

    id: str
    report: ExperienceReport
    created_at: str
    updated_at: str
    query_count: int = 0
    revision: int = 1
    similar_to: str | None = None
    deleted_at: str | None = None

    @property
    def created(self) -> float:
        """The time of creation, in seconds since 1970."""
        return datetime.fromisoformat(self.created_at).timestamp()
