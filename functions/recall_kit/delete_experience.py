"""recall-kit/delete_experience: show an experience to nobody, until it is restored; for moderators."""

from __future__ import annotations

from doors.direct import Caller, method
from recall_kit import ById, experiences
from recall_kit.answers import Answered, Moderated
from recall_kit.finding import index_now
from shared.rpc.errors import NotFound, Unavailable


@method("recall-kit/delete_experience", role="admin", errors=(NotFound, Unavailable))
def handler(params: ById, _caller: Caller) -> Answered[Moderated]:
    """Delete it; what is deleted already stays so."""
    deleted = experiences().delete(params.id)
    index_now(deleted.id)
    return Answered(success=True, data=Moderated(deleted.id, "deleted"))
