"""How a caller pages through messages."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from memory_server import InConversation
from shared.rpc.method import WHOLE

Limit = Annotated[int, Field(ge=1, le=1000), WHOLE]
Cursor = Annotated[str, Field(min_length=1, max_length=4096)]


class Paged(InConversation):
    """A conversation, and the part of it that is wanted; without `limit`, everything that fits."""

    limit: Limit | None = None
    cursor: Cursor | None = None
