"""What a store on this machine does not do by itself: meeting transactions, and failing in the midst of a task."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shared.dynamodb import client

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_EVENT = "before-call.dynamodb.TransactWriteItems"


@dataclass
class _Refusal:
    status_code: int


@contextmanager
def transactions(answer: Callable[[int], tuple[_Refusal, dict[str, Any]] | None]) -> Iterator[None]:
    """Let `answer` stand for the store's, or let it pass, for each transaction from number 1 on."""
    count = 0

    def refuse(**_: Any) -> Any:
        nonlocal count
        count += 1
        return answer(count)

    events = client().meta.events
    events.register(_EVENT, refuse)
    try:
        yield
    finally:
        events.unregister(_EVENT, refuse)


@contextmanager
def conflicting(times: int) -> Iterator[list[int]]:
    """Have the next transactions meet others, as DynamoDB says it; how many have, when it is over."""
    met: list[int] = []
    refused = 0

    def answer(number: int) -> tuple[_Refusal, dict[str, Any]] | None:
        nonlocal refused
        if number > times:
            return None
        refused += 1
        error = {"Code": "TransactionCanceledException", "Message": "Transaction cancelled"}
        return _Refusal(400), {
            "Error": error,
            "CancellationReasons": [{"Code": "None"}, {"Code": "TransactionConflict"}],
        }

    with transactions(answer):
        yield met
    met.append(refused)


@contextmanager
def failing_from(first: int) -> Iterator[None]:
    """Have the store fail from its `first` transaction on."""

    def answer(number: int) -> tuple[_Refusal, dict[str, Any]] | None:
        if number < first:
            return None
        return _Refusal(500), {"Error": {"Code": "InternalServerError", "Message": "It failed."}}

    with transactions(answer):
        yield
