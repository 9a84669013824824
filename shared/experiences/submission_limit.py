"""How many experiences callers who are no writers, known or not, may submit."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from shared.dynamodb import ConditionFailed, Write
from shared.experiences import keys
from shared.rpc.errors import TooManyRequests

if TYPE_CHECKING:
    from shared.dynamodb import Table

_MINUTE: Final = 60
_KEPT_SECONDS: Final = 3600


def require_capacity(table: Table, a_minute: int) -> None:
    """Refuse where all who are no writers have together submitted `a_minute` within this minute, at whichever door."""
    now = int(time.time())
    pk, sk = keys.submissions(now // _MINUTE)
    counting = Write(
        "Update",
        {"pk": pk, "sk": sk},
        expression="SET expires_at = :expiry ADD submitted :one",
        condition="attribute_not_exists(submitted) OR submitted < :most",
        values={":one": 1, ":most": a_minute, ":expiry": now + _KEPT_SECONDS},
    )
    try:
        table.write(counting)
    except ConditionFailed:
        raise TooManyRequests(
            "Too many experiences were submitted without a writer's key in this minute.",
            details={"retry_after_seconds": _MINUTE - now % _MINUTE},
            guidance="Wait for the next minute, or submit with a writer's key.",
        ) from None
