"""recall-kit/get_experience: one experience, by its id."""

from __future__ import annotations

from api.handler import Caller, method
from recall_kit import ExperienceIdParams
from shared.experiences.repository import experience_repository
from shared.experiences.responses import ExperienceDetail, ResponseEnvelope, experience_detail
from shared.rpc.errors import NotFound, Unavailable
from shared.rpc.mcp_catalog import McpTool


@method(
    "recall-kit/get_experience",
    role="reader",
    anonymous=True,
    errors=(NotFound, Unavailable),
    tool=McpTool(
        "Get an experience",
        "reads",
        "Read one experience by its id, with when it was last used, and in 'similar_to' the id of an older one that "
        "says nearly the same.",
    ),
)
def handler(params: ExperienceIdParams, _caller: Caller) -> ResponseEnvelope[ExperienceDetail]:
    """Read it; reading is not counted."""
    return ResponseEnvelope(success=True, data=experience_detail(experience_repository().require(params.id)))
