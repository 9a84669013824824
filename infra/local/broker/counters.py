"""The broker's counters."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class BrokerCounters:
    """Messages and packets since the start."""

    received: int = 0
    sent: int = 0
    dropped_slow: int = 0
    """Messages dropped because the client did not read fast enough."""
    dropped_rate: int = 0
    """Messages dropped because the client exceeded its publish rate."""
    expired: int = 0
    refused: int = 0
    """Connections, messages and subscriptions denied by the access rules."""
    malformed: int = 0
    """Connections ended because of malformed or forbidden packets."""
