"""Cursors: where a paged answer goes on, opaque to the caller."""

from __future__ import annotations

import base64
import json
from typing import Any

from shared.rpc.errors import FieldProblem, InvalidParams


def encode(*position: str | int) -> str:
    """A cursor that stands for `position`."""
    return base64.urlsafe_b64encode(json.dumps(position).encode()).decode().rstrip("=")


def decode(cursor: str, *types: type) -> list[Any]:
    """The position that `cursor` stands for, or an error that names it."""
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        position = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (ValueError, RecursionError):
        raise stale() from None
    if not isinstance(position, list) or [type(part) for part in position] != list(types):
        raise stale()
    return position


def stale() -> InvalidParams:
    """A cursor that this list never gave, or that no longer leads anywhere."""
    return InvalidParams(
        FieldProblem(field="cursor", message="is not a cursor of this list any more; start again without one")
    )
