"""Idempotency: what a `request_id` was used for, kept in the same transaction as what it did.

A write of one transaction needs no more: of two with one id, the second fails on the first's record, and answers
with it. A write of several transactions claims the id with its first, and until it ends others are told so; one
that ended without an answer leaves a claim that lapses.
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

_KEPT_SECONDS: Final = 24 * 60 * 60
_CLAIM_SECONDS: Final = 30
"""Longer than any function lives."""
_FREE: Final = "attribute_not_exists(pk) OR expires_at <= :now OR claimed_until <= :now"


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """A write that is asked for: what, by whom, and under which id."""

    action: str
    caller: Caller
    correlation_id: str
    payload_hash: str
    request_id: str | None = None


class IdempotencyStore:
    """The requests of one tenant that have ended, or are under way."""

    def __init__(self, table: Table, tenant_id: str) -> None:
        self._table = table
        self._tenant_id = tenant_id

    def stored_answer(self, request: WriteRequest) -> WriteResult | None:
        """The first answer to this request; none where it has not been made, or must be made to the end."""
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

    def completion_write(self, request: WriteRequest, answer: WriteResult) -> list[Write]:
        """What records `answer`, in the transaction that makes it true."""
        return self._record(request, {"answer": compact(asdict(answer))})

    def claim_write(self, request: WriteRequest) -> list[Write]:
        """What records that the request is under way, in the first of its transactions."""
        return self._record(request, {"claimed_until": _now() + _CLAIM_SECONDS})

    def finish(self, request: WriteRequest, answer: WriteResult) -> None:
        """Record the answer to a claimed request, unless whoever took the claim over was faster."""
        if request.request_id is None:
            return
        finishing = Write(
            "Update",
            self._key(request),
            expression="SET answer = :answer REMOVE claimed_until",
            condition="attribute_exists(claimed_until)",
            values={":answer": compact(asdict(answer))},
        )
        try:
            self._table.write(finishing)
        except ConditionFailed:
            return

    def release(self, request: WriteRequest) -> None:
        """Let a claimed request that failed be made again at once."""
        if request.request_id is None:
            return
        releasing = Write(
            "Update",
            self._key(request),
            expression="SET claimed_until = :now",
            condition="attribute_exists(claimed_until)",
            values={":now": _now()},
        )
        try:
            self._table.write(releasing)
        except ConditionFailed:
            return

    def _record(self, request: WriteRequest, outcome: Item) -> list[Write]:
        if request.request_id is None:
            return []
        now = _now()
        item = self._key(request) | {"payload_hash": request.payload_hash, "expires_at": now + _KEPT_SECONDS}
        return [Write("Put", item | outcome, condition=_FREE, values={":now": now})]

    def _key(self, request: WriteRequest) -> Item:
        assert request.request_id is not None
        return {"pk": keys.request(self._tenant_id, request.request_id), "sk": request.action}


def _now() -> int:
    """This moment in seconds, as times to live are given."""
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
