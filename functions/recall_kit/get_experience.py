"""recall-kit/get_experience: one experience, by its id."""

from __future__ import annotations

from doors.direct import Caller, method
from recall_kit import ById, experiences
from recall_kit.answers import Answered, ExperienceShown, shown
from shared.rpc.errors import NotFound, Unavailable
from shared.rpc.offers import Tool


@method(
    "recall-kit/get_experience",
    role="reader",
    anonymous=True,
    errors=(NotFound, Unavailable),
    tool=Tool(
        "Get an experience",
        "reads",
        "Read one experience by its id, with when it was last used, and in 'similar_to' the id of an older one that "
        "says nearly the same.",
    ),
)
def handler(params: ById, _caller: Caller) -> Answered[ExperienceShown]:
    """Read it; reading is not counted."""
    return Answered(success=True, data=shown(experiences().require(params.id)))
