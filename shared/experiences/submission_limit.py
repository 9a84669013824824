"""The rate limit on submissions by callers without the writer role, anonymous or not."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from shared.dynamodb import ConditionFailed, Write
from shared.experiences import keys
from shared.rpc.errors import TooManyRequests

if TYPE_CHECKING:
    from shared.dynamodb import Table

_MINUTE: Final = 60
_RETENTION_SECONDS: Final = 3600


def require_capacity(table: Table, per_minute: int) -> None:
    """Count a submission. Raise TooManyRequests if callers without the writer role have made `per_minute` already."""
    now = int(time.time())
    pk, sk = keys.submissions(now // _MINUTE)
    increment = Write(
        "Update",
        {"pk": pk, "sk": sk},
        expression="SET expires_at = :expiry ADD submitted :one",
        condition="attribute_not_exists(submitted) OR submitted < :most",
        values={":one": 1, ":most": per_minute, ":expiry": now + _RETENTION_SECONDS},
    )
    try:
        table.write(increment)
    except ConditionFailed:
        raise TooManyRequests(
            "Too many experiences were submitted without a writer's key this minute.",
            details={"retry_after_seconds": _MINUTE - now % _MINUTE},
            guidance="Wait for the next minute, or submit with a writer's key.",
        ) from None
