"""recall-kit/update_experience: change what an experience tells; for moderators."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, ClassVar

from pydantic import Field

from api.handler import Caller, method
from shared.experiences.models import ContextText, ExperienceId, ExperienceReport, Keywords, Text, Title
from shared.experiences.repository import experience_repository
from shared.experiences.responses import ExperienceDetail, ResponseEnvelope, experience_detail
from shared.experiences.validation import RequiredParams, require_sanitized
from shared.rpc.errors import NotFound, Unavailable
from shared.services.experience_index import index_immediately
from shared.services.keyword_extraction import with_keywords


class UpdateExperience(RequiredParams):
    """Which experience, and what it is to tell; what is left out stays as it is."""

    codes: ClassVar = {"title": "INVALID_TITLE"}

    id: ExperienceId
    title: Title | None = None
    problem_description: Text | None = None
    solution: Text | None = None
    root_cause: Annotated[Text | None, Field(description="null takes it out.")] = None
    context: Annotated[ContextText | None, Field(description="null takes it out.")] = None
    keywords: Annotated[Keywords | None, Field(description="An empty list has them made from the text.")] = None

    def revised(self, account: ExperienceReport) -> ExperienceReport:
        """What the experience is to tell, sanitised."""
        given = {name: getattr(self, name) for name in self.model_fields_set - {"id"}}
        may_be_none = {"root_cause", "context"}
        revised = replace(
            account, **{name: value for name, value in given.items() if value is not None or name in may_be_none}
        )
        require_sanitized(revised)
        return with_keywords(revised)


@method("recall-kit/update_experience", role="admin", errors=(NotFound, Unavailable))
def handler(params: UpdateExperience, _caller: Caller) -> ResponseEnvelope[ExperienceDetail]:
    """Change it, and let it be found as it is from now on."""
    changed = experience_repository().update(params.id, params.revised)
    index_immediately(changed.id)
    return ResponseEnvelope(success=True, data=experience_detail(changed))
