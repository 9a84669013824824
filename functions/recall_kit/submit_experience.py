"""recall-kit/submit_experience: publish a solved problem, to be found at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from api.handler import Caller, method
from shared.config import config
from shared.experiences.models import ContextText, ExperienceReport, Keywords, Text, Title
from shared.experiences.repository import experience_repository, experiences_table
from shared.experiences.responses import ResponseEnvelope
from shared.experiences.submission_limit import require_capacity
from shared.experiences.validation import RequiredParams, require_sanitized
from shared.rpc.errors import OutOfTime, TooManyRequests, Unavailable
from shared.rpc.mcp_catalog import McpTool
from shared.services.experience_index import index_immediately
from shared.services.keyword_extraction import with_keywords


class Submission(RequiredParams):
    """A problem and what solved it."""

    codes: ClassVar = {"title": "INVALID_TITLE"}

    title: Title
    problem_description: Annotated[Text, Field(description="What was seen, where, and what did not help.")]
    solution: Annotated[Text, Field(description="What to do, step by step.")]
    root_cause: Annotated[Text | None, Field(description="Why it happened.")] = None
    context: Annotated[
        ContextText | None,
        Field(description="Versions and the smallest code that shows it, placeholders in the place of secrets."),
    ] = None
    keywords: Annotated[
        Keywords | None, Field(description="What it is about; without them, they are made from the text.")
    ] = None

    def account(self) -> ExperienceReport:
        """What is told."""
        return ExperienceReport(
            title=self.title,
            problem_description=self.problem_description,
            solution=self.solution,
            keywords=self.keywords or [],
            root_cause=self.root_cause,
            context=self.context,
        )


@dataclass(frozen=True, slots=True)
class SubmissionResult:
    """The new experience."""

    id: str
    status: Literal["published"]
    message: str


@method(
    "recall-kit/submit_experience",
    role="writer",
    anonymous=True,
    errors=(TooManyRequests, Unavailable, OutOfTime),
    tool=McpTool(
        "Submit an experience",
        "adds",
        "Share a problem that you have solved, once the solution is proven: everybody can find it from then on. Query "
        "first whether it is known. Write no secrets and nothing personal: keys, passwords, e-mail and IP addresses, "
        "home paths; put placeholders such as <API_KEY> in their place. What has any is refused, and told which field.",
    ),
)
def handler(params: Submission, caller: Caller) -> ResponseEnvelope[SubmissionResult]:
    """Publish it, and let the next query find it."""
    account = params.account()
    require_sanitized(account)
    if not caller.holds("writer"):
        require_capacity(experiences_table(), config().anonymous_submissions_a_minute)
    experience = experience_repository().add(with_keywords(account))
    index_immediately(experience.id)
    message = "Experience record created and published successfully"
    return ResponseEnvelope(success=True, data=SubmissionResult(experience.id, "published", message))
