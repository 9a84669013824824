"""What a store on this machine does not do by itself: meeting transactions, and failing in the midst of a task."""

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
    """Let `answer` stand for the store's, or let it pass, for each transaction from number 1 on."""
    numbers = count(1)
    with intercept_requests(answer_operation("TransactWriteItems", lambda _: answer(next(numbers)))):
        yield


@contextmanager
def conflicting_transactions(times: int) -> Iterator[list[int]]:
    """Have the next transactions meet others, as DynamoDB says it; how many have, when it is over."""
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
    """Have the store fail from its `first` transaction on."""

    def answer(number: int) -> Refusal | None:
        return FAILED if number >= first else None

    with transactions(answer):
        yield
