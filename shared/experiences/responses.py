"""Results of recall-kit. Every method returns `{success, data}`, or `{success, error}` at the endpoints."""

from dataclasses import asdict, dataclass
from typing import Any, Generic, Literal, Self, TypeVar

from shared.experiences.models import Experience
from shared.experiences.repository import experience_repository

Data = TypeVar("Data")


@dataclass(frozen=True, slots=True)
class FieldError:
    """A validation error of one field."""

    field: str
    message: str


@dataclass(frozen=True, slots=True)
class ErrorDetail:
    """The error of a failed call."""

    code: str
    message: str
    validation_errors: list[FieldError] | None = None
    details: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ResponseEnvelope(Generic[Data]):
    """A response with `data` on success, `error` on failure."""

    success: bool
    data: Data | None = None
    error: ErrorDetail | None = None


@dataclass(frozen=True, slots=True)
class ModerationResult:
    """The status of an experience after moderation."""

    id: str
    status: Literal["published", "deleted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperienceSummary:
    """The fields of an experience that every result has."""

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
        """Build the result for an experience, with the `more` fields of a subclass."""
        return cls(
            id=experience.id,
            query_count=experience.query_count,
            created_at=experience.created_at,
            **asdict(experience.report),
            **more,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperienceDetail(ExperienceSummary):
    """The result of reading one experience."""

    updated_at: str
    similar_to: str | None = None


def experience_detail(experience: Experience) -> ExperienceDetail:
    """Build the result of reading one experience, with `similar_to` only if that experience still exists."""
    similar_to = experience.similar_to
    if similar_to and not experience_repository().find(similar_to):
        similar_to = None
    return ExperienceDetail.of(experience, updated_at=experience.updated_at, similar_to=similar_to)
