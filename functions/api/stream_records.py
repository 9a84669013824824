"""Workers of DynamoDB streams: which records are tried again, and which are given up.

A record waits while a service does not answer: the stream delivers it again, for hours. If it fails for another reason
three times, it is a dead letter, and the stream goes on. Later records of its partition wait for it, since the stream
delivers every record from the first failure on again.
"""

from __future__ import annotations

import hashlib
import math
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from shared.aws import dead_letters
from shared.aws.dead_letters import CRASHED, DeadLetter
from shared.aws.delivery_attempts import MAX_ATTEMPTS, DeliveryAttempts
from shared.platform.config import ConfigurationError
from shared.platform.lanes import bulk_lane
from shared.rpc.errors import KhoError, OutOfTime, TooManyRequests, Unavailable
from shared.rpc.invocation import FunctionCrashed
from shared.rpc.observation import internal_errors, observe

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_FRESH_SECONDS: Final = 10.0
"""Attempts at a younger record are counted only after they failed: almost all succeed."""


class StreamRecord(NamedTuple):
    """The change of one item."""

    id: str
    event: str
    pk: str
    sk: str
    number: str
    correlation_id: str
    is_late: bool

    @staticmethod
    def parse(record: dict[str, Any]) -> StreamRecord:
        """Parse a record of Lambda's event."""
        change = record["dynamodb"]
        pk, sk = (change["Keys"][name]["S"] for name in ("pk", "sk"))
        age = time.time() - float(change.get("ApproximateCreationDateTime", math.inf))
        is_late = math.isfinite(age) and abs(age) >= _FRESH_SECONDS  # a wrong clock counts attempts that it need not
        id_ = record["eventID"]
        # All attempts have one id. The local store's event ids are too short for it.
        correlation_id = hashlib.sha256(f"{id_}#{pk}#{sk}".encode()).hexdigest()[:32]
        return StreamRecord(id_, record["eventName"], pk, sk, change["SequenceNumber"], correlation_id, is_late)


class StreamWorker:
    """The Lambda handler of a stream's batches.

    `process` gets the records of a batch together, if it takes `batches`, else one by one. Attempts at a record are
    counted from zero when the `progress` of its work has changed. `abandon` gets a record that is given up.
    """

    def __init__(
        self,
        method: str,
        process: Callable[[Sequence[StreamRecord]], None],
        *,
        batches: bool,
        progress: Callable[[StreamRecord], str],
        abandon: Callable[[StreamRecord], None],
    ) -> None:
        self._method = method
        self._process = process
        self._batches = batches
        self._progress = progress
        self._abandon = abandon

    def __call__(self, event: dict[str, Any], _context: Any) -> dict[str, Any]:
        """Process a batch. Return the records that the stream delivers again."""
        records = [StreamRecord.parse(each) for each in event["Records"]]
        failed = self._deliver_together(records) if self._batches and len(records) > 1 else self._deliver_each(records)
        return {"batchItemFailures": [{"itemIdentifier": each.number} for each in failed]}

    def _deliver_together(self, records: Sequence[StreamRecord]) -> Sequence[StreamRecord]:
        try:
            self._run(records)
        except KhoError as error:
            return records[:1] if _is_unavailable(error) else self._deliver_each(records)
        return []

    def _deliver_each(self, records: Sequence[StreamRecord]) -> Sequence[StreamRecord]:
        failed: list[StreamRecord] = []
        for record in records:
            # Lambda halves a batch that crashes, until the record that crashes it is alone.
            counts_first = record.is_late and len(records) == 1
            if record.pk in {each.pk for each in failed} or not self._deliver(record, counts_first=counts_first):
                failed.append(record)
        return failed

    def _deliver(self, record: StreamRecord, *, counts_first: bool) -> bool:
        """Process a record. Return False if the stream has to deliver it again."""
        try:
            with internal_errors(record.correlation_id):
                return self._attempt(record, counts_first=counts_first)
        except KhoError:
            return False  # the attempt could not be counted, or the letter not sent

    def _attempt(self, record: StreamRecord, *, counts_first: bool) -> bool:
        attempts = self._attempts(record) if counts_first else None
        if attempts and attempts.begin() > MAX_ATTEMPTS:
            return self._give_up(record, attempts, CRASHED)
        try:
            self._run([record])
        except KhoError as error:
            if not _is_unavailable(error):
                attempts = attempts or self._attempts(record)
                return attempts.fail() >= MAX_ATTEMPTS and self._give_up(record, attempts, error.code)
            if attempts:
                attempts.withdraw()
            return False
        if attempts:
            attempts.withdraw()
        return True

    def _run(self, records: Sequence[StreamRecord]) -> None:
        with bulk_lane(), observe(self._method, records[0].correlation_id, budget=math.inf):
            self._process(records)

    def _attempts(self, record: StreamRecord) -> DeliveryAttempts:
        name = (self._method, record.pk, record.sk, record.number, self._progress(record))
        return DeliveryAttempts("#".join(name))

    def _give_up(self, record: StreamRecord, attempts: DeliveryAttempts, code: str) -> bool:
        """Send the record to the dead letters, once. Return True: the stream goes on."""
        if not attempts.are_over:
            self._abandon(record)
            keys = {"pk": record.pk, "sk": record.sk}
            dead_letters.send(DeadLetter(record.id, self._method, code, record.correlation_id, record.event, **keys))
            attempts.finish()
        return True


def stream_worker(
    method: str,
    *,
    progress: Callable[[StreamRecord], str] = lambda _: "",
    abandon: Callable[[StreamRecord], None] = lambda _: None,
) -> Callable[[Callable[[StreamRecord], None]], StreamWorker]:
    """Make a function of one record a worker."""

    def decorate(process: Callable[[StreamRecord], None]) -> StreamWorker:
        def process_one(records: Sequence[StreamRecord]) -> None:
            process(records[0])

        return StreamWorker(method, process_one, batches=False, progress=progress, abandon=abandon)

    return decorate


def batch_worker(method: str) -> Callable[[Callable[[Sequence[StreamRecord]], None]], StreamWorker]:
    """Make a function of several records a worker. If it fails, it gets each record by itself."""

    def decorate(process: Callable[[Sequence[StreamRecord]], None]) -> StreamWorker:
        return StreamWorker(method, process, batches=True, progress=lambda _: "", abandon=lambda _: None)

    return decorate


def _is_unavailable(error: KhoError) -> bool:
    """Return True if a service does not answer or is set up wrongly, which is not the record's fault."""
    if isinstance(error.__context__, ConfigurationError):
        return True
    # An embedding function that crashes on these texts alone is named as the cause.
    is_retryable = isinstance(error, (Unavailable, OutOfTime, TooManyRequests))
    return is_retryable and not isinstance(error.__cause__, FunctionCrashed)
