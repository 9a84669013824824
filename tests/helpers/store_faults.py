"""Faults that the local store does not produce by itself: transaction conflicts, and failures within a task."""

from __future__ import annotations

from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING

from tests.helpers.dynamodb_requests import answer_operation, intercept_requests

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.helpers.dynamodb_requests import Refusal


FAILED: Refusal = (500, {"__type": "com.amazonaws.dynamodb.v20120810#InternalServerError", "message": "It failed."})


@contextmanager
def transactions(answer: Callable[[int], Refusal | None]) -> Iterator[None]:
    """Answer each transaction with `answer`, numbered from 1. None passes it to the store."""
    numbers = count(1)
    with intercept_requests(answer_operation("TransactWriteItems", lambda _: answer(next(numbers)))):
        yield


@contextmanager
def conflicting_transactions(times: int) -> Iterator[list[int]]:
    """Answer the next `times` transactions with DynamoDB's conflict error. Yield a list for their number."""
    met: list[int] = []
    refused = 0

    def answer(number: int) -> Refusal | None:
        nonlocal refused
        if number > times:
            return None
        refused += 1
        return 400, {
            "__type": "com.amazonaws.dynamodb.v20120810#TransactionCanceledException",
            "Message": "Transaction cancelled",
            "CancellationReasons": [{"Code": "None"}, {"Code": "TransactionConflict"}],
        }

    with transactions(answer):
        yield met
    met.append(refused)


@contextmanager
def failing_transactions_from(first: int) -> Iterator[None]:
    """Fail every transaction from number `first` on."""

    def answer(number: int) -> Refusal | None:
        return FAILED if number >= first else None

    with transactions(answer):
        yield
