"""recall-kit/update_experience: change the report of an experience; for moderators."""

from dataclasses import replace
from typing import Annotated, ClassVar

from pydantic import Field

from api.deployment import EMBEDDING_INDEX, MODERATORS, SECRET_SCANNER, lambda_function, table
from api.handler import method
from recall_kit import require_moderator
from shared.experiences.index import index_immediately
from shared.experiences.keyword_extraction import with_keywords
from shared.experiences.models import ContextText, ExperienceId, ExperienceReport, Keywords, Text, Title
from shared.experiences.repository import experience_repository
from shared.experiences.responses import ExperienceDetail, ResponseEnvelope, experience_detail
from shared.experiences.validation import RequiredParams, require_sanitized
from shared.rpc.caller import Caller
from shared.rpc.errors import NotFound, Unavailable


class UpdateExperience(RequiredParams):
    """The experience and its new field values. Omitted fields stay as they are."""

    codes: ClassVar = {"title": "INVALID_TITLE"}

    id: ExperienceId
    title: Title | None = None
    problem_description: Text | None = None
    solution: Text | None = None
    root_cause: Annotated[Text | None, Field(description="null removes it.")] = None
    context: Annotated[ContextText | None, Field(description="null removes it.")] = None
    keywords: Annotated[Keywords | None, Field(description="An empty list: they are extracted from the text.")] = None

    def revise(self, report: ExperienceReport) -> ExperienceReport:
        """Return the report with the new values. Raise InvalidParams if it has secrets."""
        values = {name: getattr(self, name) for name in self.model_fields_set - {"id"}}
        nullable = {"root_cause", "context"}
        revised = replace(
            report, **{name: value for name, value in values.items() if value is not None or name in nullable}
        )
        require_sanitized(revised)
        return with_keywords(revised)


@lambda_function(
    table("Experiences", "BatchGetItem", "PutItem", "UpdateItem"),
    EMBEDDING_INDEX,
    MODERATORS,
    SECRET_SCANNER,
)
@method(
    "recall-kit/update_experience",
    role="admin",
    errors=(NotFound, Unavailable),
    example={"id": "00000000-0000-4000-8000-000000000001", "root_cause": "The callback closed over the first render."},
)
def handler(params: UpdateExperience, caller: Caller) -> ResponseEnvelope[ExperienceDetail]:
    """Change the report and index it again."""
    require_moderator(caller)
    updated = experience_repository().update(params.id, params.revise)
    index_immediately(updated)
    return ResponseEnvelope(success=True, data=experience_detail(updated))
