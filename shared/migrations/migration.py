"""One step of a migration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from shared.aws.dynamodb import Item, Table


@dataclass(frozen=True, slots=True)
class Migration:
    """A change of those items of a table for which a condition of DynamoDB holds.

    `change` gets a page of them, and returns how many items it has written. It may get a page again, after it was
    interrupted or at the same time in another process. Functions of this program may write at the same time.
    """

    summary: str
    condition: str
    values: Mapping[str, Any]
    change: Callable[[Table, Iterable[Item]], int]
