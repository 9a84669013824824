"""Idempotency keys: a record per `request_id`, written in the same transaction as the change that it describes.

For a change of one transaction that is enough: a second request with the same id fails on the first one's record and
returns its result. A change of several transactions claims the id with its first; until it ends, others get
IN_PROGRESS. The claim of a change that ended without a result expires.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Final

from shared.aws.dynamodb import ConditionFailed, Write
from shared.documents import errors, keys
from shared.documents.models import WriteResult
from shared.platform.clock import lasts, latest
from shared.rpc import timestamps
from shared.rpc.strict_json import compact

if TYPE_CHECKING:
    from shared.aws.dynamodb import Item, Table
    from shared.rpc.caller import Caller

_RETENTION_SECONDS: Final = 24 * 60 * 60
_CLAIM_SECONDS: Final = 30
"""Longer than any function runs."""
_FREE: Final = "attribute_not_exists(pk) OR expires_at <= :now OR claimed_until <= :now OR claimed_until > :latest"


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """The identity of a write: its action, caller, hash of action and payload, and idempotency key."""

    action: str
    caller: Caller
    correlation_id: str
    payload_hash: str
    request_id: str | None = None


class IdempotencyStore:
    """The idempotency records of one tenant."""

    def __init__(self, table: Table, tenant_id: str) -> None:
        self._table = table
        self._tenant_id = tenant_id

    def stored_result(self, request: WriteRequest) -> WriteResult | None:
        """Return the result of an earlier request with this id, or None if there is none or its claim has expired."""
        if request.request_id is None:
            return None
        key = self._key(request)
        item = self._table.get(key["pk"], key["sk"])
        now = _now()
        if item is None or item["expires_at"] <= now:
            return None
        if item["payload_hash"] != request.payload_hash:
            raise errors.idempotency_mismatch(request.request_id)
        if "answer" in item:
            return replace(WriteResult(**json.loads(item["answer"])), replayed=True)
        if lasts(item["claimed_until"], now, _CLAIM_SECONDS):
            raise errors.in_progress(request.request_id)
        return None

    def record(self, request: WriteRequest, result: WriteResult | None) -> list[Write]:
        """Build the record of a request that completes with `result`, or without one the claim of its first write."""
        if request.request_id is None:
            return []
        now = _now()
        outcome = {"answer": compact(asdict(result))} if result else {"claimed_until": now + _CLAIM_SECONDS}
        item = self._key(request) | {"payload_hash": request.payload_hash, "expires_at": now + _RETENTION_SECONDS}
        values = {":now": now, ":latest": latest(now, _CLAIM_SECONDS)}
        return [Write("Put", item | outcome, condition=_FREE, values=values)]

    def finish(self, request: WriteRequest, result: WriteResult) -> None:
        """Store the result of a claimed request, unless a repetition that took over an expired claim was faster."""
        self._end_claim(request, "SET answer = :outcome REMOVE claimed_until", compact(asdict(result)))

    def release(self, request: WriteRequest) -> None:
        """Give up the claim of a failed request, so that it can be repeated immediately."""
        self._end_claim(request, "SET claimed_until = :outcome", _now())

    def _end_claim(self, request: WriteRequest, expression: str, outcome: str | int) -> None:
        if request.request_id is None:
            return
        claimed = "attribute_exists(claimed_until)"
        with suppress(ConditionFailed):
            self._table.write(Write("Update", self._key(request), expression, claimed, {":outcome": outcome}))

    def _key(self, request: WriteRequest) -> Item:
        assert request.request_id is not None
        return {"pk": keys.request(self._tenant_id, request.request_id), "sk": keys.REQUEST}


def _now() -> int:
    """Return the current time in seconds, the unit of TTL attributes."""
    return timestamps.now() // 1_000_000
