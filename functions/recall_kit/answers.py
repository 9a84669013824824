"""What every method of recall-kit answers: `{success, data}`, or `{success, error}` as the doors say errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, Literal, Self, TypeVar

from recall_kit import experiences
from shared.experiences.models import Experience

Data = TypeVar("Data")


@dataclass(frozen=True, slots=True)
class ValidationProblem:
    """What is wrong with one field."""

    field: str
    message: str


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong."""

    code: str
    message: str
    validation_errors: list[ValidationProblem] | None = None
    details: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Answered(Generic[Data]):
    """`data` where it was a success, else `error`."""

    success: bool
    data: Data | None = None
    error: Failure | None = None


@dataclass(frozen=True, slots=True)
class Moderated:
    """What has become of an experience."""

    id: str
    status: Literal["published", "deleted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperienceTold:
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
class ExperienceShown(ExperienceTold):
    """One experience, as it is read by its id."""

    updated_at: str
    similar_to: str | None = None


def shown(experience: Experience) -> ExperienceShown:
    """`experience` by itself, beside an older one that says nearly the same, while that can be read."""
    return ExperienceShown.of(
        experience, updated_at=experience.updated_at, similar_to=experiences().readable(experience.similar_to)
    )
