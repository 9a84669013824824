"""recall-kit/delete_experience: hide an experience until it is restored; for moderators."""

from api.deployment import MODERATORS, SEARCH_INDEX, lambda_function, table
from api.handler import method
from recall_kit import ExperienceIdParams, require_moderator
from shared.experiences.index import index_immediately
from shared.experiences.repository import experience_repository
from shared.experiences.responses import ModerationResult, ResponseEnvelope
from shared.rpc.caller import Caller
from shared.rpc.errors import NotFound, Unavailable


@lambda_function(table("Experiences", "BatchGetItem", "PutItem"), SEARCH_INDEX, MODERATORS)
@method(
    "recall-kit/delete_experience",
    role="admin",
    errors=(NotFound, Unavailable),
    example={"id": "00000000-0000-4000-8000-000000000002"},
)
def handler(params: ExperienceIdParams, caller: Caller) -> ResponseEnvelope[ModerationResult]:
    """Delete an experience softly. Succeed if it is already deleted."""
    require_moderator(caller)
    deleted = experience_repository().delete(params.id)
    index_immediately(deleted)
    return ResponseEnvelope(success=True, data=ModerationResult(deleted.id, "deleted"))
