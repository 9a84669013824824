"""What a client may do, as IoT Core's quotas have it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """IoT Core's quotas where it has them, and bounds of this machine's memory where IoT Core scales."""

    payload_bytes: int = 128 * 1024
    packet_bytes: int = 149_504
    client_id_bytes: int = 128
    topic_bytes: int = 256
    topic_levels: int = 8
    filters_per_subscribe: int = 8
    subscriptions: int = 50
    publishes_per_second: int | None = 100
    """What a connection publishes beyond it is discarded; None in benchmarks."""
    unacknowledged: int = 100
    topic_aliases: int = 8
    keepalive_seconds: tuple[int, int] = (30, 1200)
    """The shortest and the longest; the latter also where a client asks for none."""
    session_seconds: int = 3600
    message_expiry_seconds: int = 604_800
    connect_seconds: float = 10.0
    """From the connection to a CONNECT that is let in."""
    remembered_seconds: float = 1800.0
    """How long it can be asked when and why a client went."""

    connections: int = 20_000
    strangers: int = 2_000
    """Of these, how many may not have been let in yet."""
    sessions_kept: int = 10_000
    retained_messages: int = 5_000
    queued_messages: int = 1_000
    """At QoS 1 for one client that is away or slow."""
    outbound_bytes: int = 1024 * 1024
    """On the way to one client that does not read."""


def fits(limits: Limits, topic: str) -> bool:
    """Whether a topic or filter is short and shallow enough."""
    return len(topic.encode("utf-8")) <= limits.topic_bytes and topic.count("/") < limits.topic_levels
