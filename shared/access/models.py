"""The identity that credentials prove."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shared.rpc.caller import Caller

Clock = Callable[[], float]
"""Returns the seconds since 1970."""


@dataclass(frozen=True, slots=True)
class Identity:
    """A caller, and the expiry of its credentials."""

    caller: Caller
    expires_at: float | None = None
