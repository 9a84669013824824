"""How a caller pages through a list."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from shared.rpc.method import WHOLE, Params

Cursor = Annotated[str, Field(min_length=1, max_length=4096)]


class Paged(Params):
    """Which part of the list."""

    limit: Annotated[int, Field(ge=1, le=1000), WHOLE] = 100
    cursor: Cursor | None = None
