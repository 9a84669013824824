"""recall-kit/restore_experience: show a deleted experience again; for moderators."""

from __future__ import annotations

from doors.direct import Caller, method
from recall_kit import ById, experiences
from recall_kit.answers import Answered, Moderated
from recall_kit.finding import index_now
from shared.rpc.errors import NotFound, Unavailable


@method("recall-kit/restore_experience", role="admin", errors=(NotFound, Unavailable))
def handler(params: ById, _caller: Caller) -> Answered[Moderated]:
    """Restore it; what is not deleted stays as it is."""
    restored = experiences().restore(params.id)
    index_now(restored.id)
    return Answered(success=True, data=Moderated(restored.id, "published"))
