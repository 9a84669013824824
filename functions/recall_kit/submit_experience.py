"""recall-kit/submit_experience: publish a solved problem, searchable immediately."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from api.deployment import EMBEDDING_INDEX, SECRET_SCANNER, lambda_function, table
from api.handler import method
from shared.experiences.index import index_immediately
from shared.experiences.keyword_extraction import with_keywords
from shared.experiences.models import ContextText, ExperienceReport, Keywords, Text, Title
from shared.experiences.repository import experience_repository
from shared.experiences.responses import ResponseEnvelope
from shared.experiences.validation import RequiredParams, require_sanitized
from shared.rpc.caller import Caller
from shared.rpc.errors import OutOfTime, TooManyRequests, Unavailable
from shared.rpc.mcp_catalog import McpTool


class Submission(RequiredParams):
    """A problem and its solution."""

    codes: ClassVar = {"title": "INVALID_TITLE"}

    title: Title
    problem_description: Annotated[Text, Field(description="The symptoms, where they occur, and what did not help.")]
    solution: Annotated[Text, Field(description="The steps that solve it.")]
    root_cause: Annotated[Text | None, Field(description="The reason for the problem.")] = None
    context: Annotated[
        ContextText | None,
        Field(description="Versions and the smallest code that shows the problem, with placeholders for secrets."),
    ] = None
    keywords: Annotated[
        Keywords | None, Field(description="The topics. Without them, they are extracted from the text.")
    ] = None

    def report(self) -> ExperienceReport:
        """Return the submitted report."""
        return ExperienceReport(**dict(self) | {"keywords": self.keywords or []})


@dataclass(frozen=True, slots=True)
class SubmissionResult:
    """The new experience."""

    id: str
    status: Literal["published"]
    message: str


@lambda_function(
    table("Experiences", "BatchGetItem", "PutItem", "UpdateItem"),
    EMBEDDING_INDEX,
    SECRET_SCANNER,
)
@method(
    "recall-kit/submit_experience",
    role="writer",
    anonymous=True,
    errors=(TooManyRequests, Unavailable, OutOfTime),
    example={
        "title": "A hook's state is old in a callback",
        "problem_description": "The value that a callback reads is the one of its first render.",
        "solution": "Name the value in the callback's dependencies.",
        "keywords": ["react", "usestate"],
    },
    tool=McpTool(
        "Submit an experience",
        "adds",
        "Share a problem that you have solved, once the solution is proven. It is public immediately. First query "
        "whether it is known. Include no secrets or personal data: keys, passwords, e-mail and IP addresses, home "
        "paths; use placeholders such as <API_KEY>. A submission with any is rejected, and the error names the fields.",
    ),
)
def handler(params: Submission, _caller: Caller) -> ResponseEnvelope[SubmissionResult]:
    """Publish the experience and index it."""
    report = params.report()
    require_sanitized(report)
    experience = experience_repository().add(with_keywords(report))
    index_immediately(experience)
    message = "Experience record created and published successfully"
    return ResponseEnvelope(success=True, data=SubmissionResult(experience.id, "published", message))
