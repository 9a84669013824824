"""What an experience is made of, as it is submitted and shown."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import AfterValidator, Field

from shared.experiences.secret_scanner.whitespace import is_blank

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_TITLE: Final = 500
MAX_TEXT: Final = 20_000
MAX_KEYWORD: Final = 100
MAX_KEYWORDS: Final = 50
NOT_BLANK: Final[dict[str, Any]] = {"pattern": r"\S"}
"""What a schema says of `not_blank`; the characters that take no room would fill it."""


def not_blank(text: str) -> str:
    """`text`, in which there must be something to see."""
    if is_blank(text):
        raise ValueError("should not be empty")
    return text


def _kept(keyword: str) -> str:
    return keyword.strip().lower()  # which is longer for a few letters, such as İ


def _keyword(text: str) -> str:
    if is_blank(text) or len(_kept(text)) > MAX_KEYWORD:
        raise ValueError(f"should have 1 to {MAX_KEYWORD} characters")
    return text


Title = Annotated[
    str,
    Field(
        min_length=1,
        max_length=MAX_TITLE,
        json_schema_extra=NOT_BLANK,
        description="The problem in one line, as whoever has it would search for it.",
        examples=["React useState not updating state"],
    ),
    AfterValidator(not_blank),
]
Text = Annotated[str, Field(min_length=1, max_length=MAX_TEXT, json_schema_extra=NOT_BLANK), AfterValidator(not_blank)]
ContextText = Annotated[str, Field(max_length=MAX_TEXT)]
Keyword = Annotated[
    str,
    AfterValidator(_keyword),
    # Blanks around it do not count, which no schema can say.
    Field(json_schema_extra={"minLength": 1, "maxLength": MAX_KEYWORD, **NOT_BLANK}),
]
Keywords = Annotated[list[Keyword], Field(max_length=MAX_KEYWORDS)]
ExperienceId = Annotated[str, Field(min_length=1, max_length=64, examples=["550e8400-e29b-41d4-a716-446655440000"])]


def uniform(keywords: Iterable[str]) -> list[str]:
    """Keywords as they are kept: trimmed, lower-cased, each once."""
    return list(dict.fromkeys(map(_kept, keywords)))


@dataclass(frozen=True, slots=True)
class ExperienceReport:
    """What somebody tells of a problem and its solution."""

    title: str
    problem_description: str
    solution: str
    keywords: list[str]
    root_cause: str | None = None
    context: str | None = None


@dataclass(frozen=True, slots=True)
class Experience:
    """One experience as it is now; `deleted_at` where it is shown to nobody."""

    id: str
    account: ExperienceReport
    created_at: str
    updated_at: str
    query_count: int = 0
    revision: int = 1
    similar_to: str | None = None
    deleted_at: str | None = None

    @property
    def created(self) -> float:
        """When it was created, in seconds since 1970."""
        return datetime.fromisoformat(self.created_at).timestamp()


def now() -> str:
    """This moment, as times are given everywhere."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
