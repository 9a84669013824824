"""The identity that credentials prove."""

from collections.abc import Callable
from dataclasses import dataclass

from shared.rpc.caller import Caller

Clock = Callable[[], float]
"""Returns the seconds since 1970."""


@dataclass(frozen=True, slots=True)
class Identity:
    """A caller, and the expiry of its credentials."""

    caller: Caller
    expires_at: float | None = None
    resource: str = ""
    """The address that an OAuth token is for; empty: all of Kho."""
