"""What every method of recall-kit answers: `{success, data}`, or `{success, error}` as the doors say errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, Literal, Self, TypeVar

from shared.experiences.models import Experience
from shared.experiences.repository import experience_repository

Data = TypeVar("Data")


@dataclass(frozen=True, slots=True)
class FieldError:
    """What is wrong with one field."""

    field: str
    message: str


@dataclass(frozen=True, slots=True)
class ErrorDetail:
    """What went wrong."""

    code: str
    message: str
    validation_errors: list[FieldError] | None = None
    details: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ResponseEnvelope(Generic[Data]):
    """`data` where it was a success, else `error`."""

    success: bool
    data: Data | None = None
    error: ErrorDetail | None = None


@dataclass(frozen=True, slots=True)
class ModerationResult:
    """What has become of an experience."""

    id: str
    status: Literal["published", "deleted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperienceSummary:
    """What every answer tells of an experience."""

    id: str
    title: str
    problem_description: str
    root_cause: str | None = None
    solution: str
    context: str | None = None
    keywords: list[str]
    query_count: int
    created_at: str

    @classmethod
    def of(cls, experience: Experience, **more: Any) -> Self:
        """`experience` as it is told, with what one answer tells more."""
        account = experience.account
        return cls(
            id=experience.id,
            title=account.title,
            problem_description=account.problem_description,
            root_cause=account.root_cause,
            solution=account.solution,
            context=account.context,
            keywords=account.keywords,
            query_count=experience.query_count,
            created_at=experience.created_at,
            **more,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperienceDetail(ExperienceSummary):
    """One experience, as it is read by its id."""

    updated_at: str
    similar_to: str | None = None


def experience_detail(experience: Experience) -> ExperienceDetail:
    """`experience` by itself, beside an older one that says nearly the same, while that can be read."""
    return ExperienceDetail.of(
        experience, updated_at=experience.updated_at, similar_to=experience_repository().readable(experience.similar_to)
    )
