"""recall-kit/update_experience: change what an experience tells; for moderators."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, ClassVar

from pydantic import Field

from doors.direct import Caller, method
from recall_kit import experiences
from recall_kit.answers import Answered, ExperienceShown, shown
from recall_kit.finding import index_now
from recall_kit.keywords import with_keywords
from recall_kit.validating import RequiredParams, require_sanitized
from shared.experiences.models import Account, ContextText, ExperienceId, Keywords, Text, Title
from shared.rpc.errors import NotFound, Unavailable


class Change(RequiredParams):
    """Which experience, and what it is to tell; what is left out stays as it is."""

    codes: ClassVar = {"title": "INVALID_TITLE"}

    id: ExperienceId
    title: Title | None = None
    problem_description: Text | None = None
    solution: Text | None = None
    root_cause: Annotated[Text | None, Field(description="null takes it out.")] = None
    context: Annotated[ContextText | None, Field(description="null takes it out.")] = None
    keywords: Annotated[Keywords | None, Field(description="An empty list has them made from the text.")] = None

    def revised(self, account: Account) -> Account:
        """What the experience is to tell, sanitised."""
        given = {name: getattr(self, name) for name in self.model_fields_set - {"id"}}
        may_be_none = {"root_cause", "context"}
        revised = replace(
            account, **{name: value for name, value in given.items() if value is not None or name in may_be_none}
        )
        require_sanitized(revised)
        return with_keywords(revised)


@method("recall-kit/update_experience", role="admin", errors=(NotFound, Unavailable))
def handler(params: Change, _caller: Caller) -> Answered[ExperienceShown]:
    """Change it, and let it be found as it is from now on."""
    changed = experiences().update(params.id, params.revised)
    index_now(changed.id)
    return Answered(success=True, data=shown(changed))
