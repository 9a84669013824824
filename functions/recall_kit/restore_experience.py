"""recall-kit/restore_experience: restore a deleted experience; for moderators."""

from api.deployment import EMBEDDING_INDEX, MODERATORS, lambda_function, table
from api.handler import method
from recall_kit import ExperienceIdParams, require_moderator
from shared.experiences.index import index_immediately
from shared.experiences.repository import experience_repository
from shared.experiences.responses import ModerationResult, ResponseEnvelope
from shared.rpc.caller import Caller
from shared.rpc.errors import NotFound, Unavailable


@lambda_function(table("Experiences", "BatchGetItem", "PutItem", "UpdateItem"), EMBEDDING_INDEX, MODERATORS)
@method(
    "recall-kit/restore_experience",
    role="admin",
    errors=(NotFound, Unavailable),
    example={"id": "00000000-0000-4000-8000-000000000003"},
)
def handler(params: ExperienceIdParams, caller: Caller) -> ResponseEnvelope[ModerationResult]:
    """Restore a deleted experience. Change nothing if it is not deleted."""
    require_moderator(caller)
    restored = experience_repository().restore(params.id)
    index_immediately(restored)
    return ResponseEnvelope(success=True, data=ModerationResult(restored.id, "published"))
