"""Another caller, who acts just before a step of the tested one: a race that always has the same outcome."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING, Literal

from tests.helpers.dynamodb_requests import intercept_requests

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Operation = Literal["GetItem", "BatchGetItem", "Query", "PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems"]


@contextmanager
def another_caller(act: Callable[[], object], *, before: Operation, at: int = 1) -> Iterator[None]:
    """Run `act` just before this thread sends request number `at` of the operation. Fail if it never does."""
    thread = threading.get_ident()
    numbers = count(1)
    acted = threading.Event()

    def look(operation: str, _params: object) -> None:
        if operation == before and threading.get_ident() == thread and not acted.is_set() and next(numbers) == at:
            acted.set()
            act()

    with intercept_requests(look):
        yield
    assert acted.is_set(), f"fewer than {at} requests {before}"
