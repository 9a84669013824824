"""What a broker has done and refused."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class BrokerCounters:
    """Messages and packets since the start."""

    received: int = 0
    sent: int = 0
    dropped_slow: int = 0
    """Not sent, because the client did not read what was before it."""
    dropped_rate: int = 0
    """Not taken, because the client published too often."""
    expired: int = 0
    refused: int = 0
    """Connections, messages and subscriptions against the access rules."""
    malformed: int = 0
    """Connections ended for what is not MQTT, or not allowed in it."""
