"""A dead worker's record tells what became of the request on each of its connections."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import pytest

from infra.local.workers.connection_record import ConnectionRecord, ConnectionRecords, Progress, Traffic

if TYPE_CHECKING:
    from collections.abc import Iterator

SLOT: Final = 7
REQUEST: Final = 100
RESPONSE: Final = 300


@contextmanager
def record() -> Iterator[tuple[ConnectionRecords, ConnectionRecord]]:
    """Yield the owner's side and the worker's side of a connection's record."""
    records = ConnectionRecords()
    try:
        yield records, records.open(SLOT)
    finally:
        records.close()


STEPS: Final = (
    ("read", Progress.NOT_BEGUN, 0),
    ("begin", Progress.BEGUN, 0),
    ("write", Progress.BEGUN, 0),
    ("answer", Progress.BEGUN, 0),
    ("", Progress.BETWEEN_REQUESTS, RESPONSE),
)
"""Each step of a call, what the record says after it, and the bytes of the response that the system has."""


@pytest.mark.parametrize("earlier", [0, 1, 2])
def test_each_step_of_a_call(earlier: int) -> None:
    """The answer after a worker's death is right after each step, on new and on used connections."""
    with record() as (records, worker):
        for _ in range(earlier):
            call(worker)
        assert progress(records, earlier, 0) is Progress.BETWEEN_REQUESTS
        for step, expected, sent in STEPS:
            take(worker, step)
            assert progress(records, earlier, sent, reads=1) is expected, step


def test_part_of_a_response_cannot_be_followed_by_another() -> None:
    with record() as (records, worker):
        call(worker)
        assert records.progress(SLOT, Traffic(RESPONSE - 1, REQUEST)) is Progress.UNKNOWN
        worker.read(REQUEST)
        worker.begin()
        worker.write(10)
        assert records.progress(SLOT, Traffic(RESPONSE + 10, 2 * REQUEST)) is Progress.UNKNOWN


def test_refusal_that_was_not_sent_means_that_nothing_began() -> None:
    with record() as (records, worker):
        worker.read(REQUEST)
        worker.write(RESPONSE)
        worker.answer()
        assert records.progress(SLOT, Traffic(0, REQUEST)) is Progress.NOT_BEGUN
        assert records.progress(SLOT, Traffic(RESPONSE, REQUEST)) is Progress.BETWEEN_REQUESTS


def test_bytes_that_were_taken_and_not_recorded_are_a_request_that_has_not_begun() -> None:
    with record() as (records, worker):
        assert records.progress(SLOT, Traffic(0, 1)) is Progress.NOT_BEGUN
        call(worker)
        assert records.progress(SLOT, Traffic(RESPONSE, REQUEST + 1)) is Progress.NOT_BEGUN


def test_requests_in_one_piece_are_not_given_to_another_worker() -> None:
    """The dead worker has read the second request with the first."""
    with record() as (records, worker):
        worker.read(REQUEST)
        worker.begin()
        worker.read(REQUEST)
        assert records.progress(SLOT, Traffic(0, 2 * REQUEST)) is Progress.BEGUN
        worker.write(RESPONSE)
        worker.answer()
        assert records.progress(SLOT, Traffic(RESPONSE, 2 * REQUEST)) is Progress.UNKNOWN


def test_connection_that_was_to_be_closed_has_no_other_request() -> None:
    with record() as (records, worker):
        call(worker)
        worker.close()
        assert records.progress(SLOT, Traffic(RESPONSE, REQUEST)) is Progress.UNKNOWN


def test_record_is_cleared_for_the_next_connection() -> None:
    with record() as (records, worker):
        worker.read(REQUEST)
        worker.begin()
        records.clear(SLOT)
        assert records.progress(SLOT, Traffic()) is Progress.BETWEEN_REQUESTS


def test_note_lasts_as_long_as_its_request() -> None:
    with record() as (records, worker):
        assert records.request(SLOT) is None
        worker.read(REQUEST)
        assert records.request(SLOT) == b""
        worker.note(b"POST /x\n\n", b"{}")
        assert records.request(SLOT) == b"POST /x\n\n{}"
        worker.note(b"POST /y\n\n", bytes(5000))
        assert records.request(SLOT) == b"POST /y\n\n"
        worker.begin()
        worker.write(RESPONSE)
        worker.answer()
        assert records.request(SLOT) is None


def call(worker: ConnectionRecord) -> None:
    """Record a whole call."""
    for step, _, _ in STEPS:
        take(worker, step)


def take(worker: ConnectionRecord, step: str) -> None:
    """Record one step."""
    match step:
        case "read":
            worker.read(REQUEST)
        case "begin":
            worker.begin()
        case "write":
            worker.write(RESPONSE)
        case "answer":
            worker.answer()


def progress(records: ConnectionRecords, earlier: int, sent: int, reads: int = 0) -> Progress:
    """Return the progress after earlier calls, and bytes of this one."""
    return records.progress(SLOT, Traffic(earlier * RESPONSE + sent, (earlier + reads) * REQUEST))
