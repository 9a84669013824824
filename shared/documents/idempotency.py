"""Idempotency keys: a record per `request_id`, written in the same transaction as the change that it describes.

For a change of one transaction that is enough: a second request with the same id fails on the first one's record and
returns its result. A change of several transactions claims the id with its first; until it ends, others get
IN_PROGRESS. The claim of a change that ended without a result expires.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Final

from shared.documents import keys, timestamps
from shared.documents.models import WriteResult
from shared.dynamodb import ConditionFailed, Write
from shared.rpc.errors import Conflict
from shared.rpc.strict_json import compact

if TYPE_CHECKING:
    from shared.dynamodb import Item, Table
    from shared.rpc.caller import Caller

_RETENTION_SECONDS: Final = 24 * 60 * 60
_CLAIM_SECONDS: Final = 30
"""Longer than any function runs."""
_FREE: Final = "attribute_not_exists(pk) OR expires_at <= :now OR claimed_until <= :now"


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """The identity of a write: its action, caller, payload hash and idempotency key."""

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
            raise _mismatch(request)
        if "answer" in item:
            return replace(WriteResult(**json.loads(item["answer"])), replayed=True)
        if item["claimed_until"] > now:
            raise _in_progress(request)
        return None

    def completion_writes(self, request: WriteRequest, result: WriteResult) -> list[Write]:
        """Build the record of a completed request, for the transaction that completes it."""
        return self._record(request, {"answer": compact(asdict(result))})

    def claim_writes(self, request: WriteRequest) -> list[Write]:
        """Build the record of a request in progress, for the first of its transactions."""
        return self._record(request, {"claimed_until": _now() + _CLAIM_SECONDS})

    def finish(self, request: WriteRequest, result: WriteResult) -> None:
        """Store the result of a claimed request, unless a repetition that took over an expired claim was faster."""
        if request.request_id is None:
            return
        finish = Write(
            "Update",
            self._key(request),
            expression="SET answer = :answer REMOVE claimed_until",
            condition="attribute_exists(claimed_until)",
            values={":answer": compact(asdict(result))},
        )
        try:
            self._table.write(finish)
        except ConditionFailed:
            return

    def release(self, request: WriteRequest) -> None:
        """Give up the claim of a failed request, so that it can be repeated immediately."""
        if request.request_id is None:
            return
        release = Write(
            "Update",
            self._key(request),
            expression="SET claimed_until = :now",
            condition="attribute_exists(claimed_until)",
            values={":now": _now()},
        )
        try:
            self._table.write(release)
        except ConditionFailed:
            return

    def _record(self, request: WriteRequest, outcome: Item) -> list[Write]:
        if request.request_id is None:
            return []
        now = _now()
        item = self._key(request) | {"payload_hash": request.payload_hash, "expires_at": now + _RETENTION_SECONDS}
        return [Write("Put", item | outcome, condition=_FREE, values={":now": now})]

    def _key(self, request: WriteRequest) -> Item:
        assert request.request_id is not None
        return {"pk": keys.request(self._tenant_id, request.request_id), "sk": request.action}


def _now() -> int:
    """Return the current time in seconds, the unit of TTL attributes."""
    return timestamps.now() // 1_000_000


def _mismatch(request: WriteRequest) -> Conflict:
    return Conflict(
        "This request_id was used for another payload.",
        details={"request_id": request.request_id},
        guidance="Use a new request_id for a new request; the same one only to repeat the same request.",
        code="IDEMPOTENCY_MISMATCH",
    )


def _in_progress(request: WriteRequest) -> Conflict:
    return Conflict(
        "The first request with this request_id is still running.",
        details={"request_id": request.request_id, "retryable": True},
        guidance="Call again in a moment with the same request_id and payload.",
        code="IN_PROGRESS",
    )
