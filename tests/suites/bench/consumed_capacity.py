"""The capacity that calls to the store consume."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from tests.helpers.dynamodb_requests import intercept_requests

if TYPE_CHECKING:
    from collections.abc import Iterator

_READS: Final = ("GetItem", "BatchGetItem", "Query")


@contextmanager
def consumed_capacity() -> Iterator[Counter[str]]:
    """Count the calls that Kho makes from now on, with their read and write units."""
    units: Counter[str] = Counter()

    def ask(_: str, params: Any) -> None:
        params["ReturnConsumedCapacity"] = "TOTAL"

    def note(operation: str, answer: Any) -> None:
        said = answer.get("ConsumedCapacity", [])
        units["calls"] += 1
        units["read" if operation in _READS else "write"] += sum(
            each["CapacityUnits"] for each in (said if isinstance(said, list) else [said])
        )

    with intercept_requests(ask, note):
        yield units
