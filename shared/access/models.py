"""What credentials establish."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shared.rpc.caller import Caller

Clock = Callable[[], float]
"""Gives the seconds since 1970."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Who is calling, and until when the credentials say so."""

    caller: Caller
    expires_at: float | None = None
