"""The broker's limits, equal to IoT Core's quotas."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """IoT Core's quotas, and memory bounds of this machine where IoT Core scales."""

    payload_bytes: int = 128 * 1024
    packet_bytes: int = 149_504
    client_id_bytes: int = 128
    topic_bytes: int = 256
    topic_levels: int = 8
    filters_per_subscribe: int = 8
    subscriptions: int = 50
    publishes_per_second: int | None = 100
    """Messages above this rate are discarded; None disables the limit, for benchmarks."""
    keepalive_seconds: tuple[int, int] = (30, 1200)
    """The shortest and the longest keepalive; the latter also applies if the client requests none."""
    connect_seconds: float = 10.0
    """The time from the TCP connection to an accepted CONNECT."""
    presence_seconds: float = 1800.0
    """The time for which a disconnected client's record is kept."""

    connections: int = 20_000
    unauthenticated_connections: int = 2_000
    """The number of these that may be unauthenticated."""
    outbound_bytes: int = 1024 * 1024
    """Bytes buffered for one client that does not read."""


def fits(limits: Limits, topic: str) -> bool:
    """Return True if a topic or filter is within the limits of length and depth."""
    return len(topic.encode("utf-8")) <= limits.topic_bytes and topic.count("/") < limits.topic_levels
