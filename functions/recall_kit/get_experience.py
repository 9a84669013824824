"""recall-kit/get_experience: one experience, by its id."""

from api.deployment import lambda_function, table
from api.handler import method
from recall_kit import ExperienceIdParams
from shared.experiences.repository import experience_repository
from shared.experiences.responses import ExperienceDetail, ResponseEnvelope, experience_detail
from shared.rpc.caller import Caller
from shared.rpc.errors import NotFound, Unavailable
from shared.rpc.mcp_catalog import McpTool


@lambda_function(table("Experiences", "BatchGetItem"))
@method(
    "recall-kit/get_experience",
    role="reader",
    anonymous=True,
    errors=(NotFound, Unavailable),
    example={"id": "00000000-0000-4000-8000-000000000001"},
    tool=McpTool(
        "Get an experience",
        "reads",
        "Read one experience by its id, with the time of its last use, and in 'similar_to' the id of an older, nearly "
        "identical one.",
    ),
)
def handler(params: ExperienceIdParams, _caller: Caller) -> ResponseEnvelope[ExperienceDetail]:
    """Read an experience without counting it as a query result."""
    return ResponseEnvelope(success=True, data=experience_detail(experience_repository().require(params.id)))
