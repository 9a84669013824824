"""Subscriptions, and the subscribers that a topic matches."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from infra.local.iot.mqtt.topics import has_wildcard, matches

if TYPE_CHECKING:
    from infra.local.iot.broker.messages import BrokerMessage

_CACHED_TOPICS: Final = 8_192

Subscriber = Callable[["BrokerMessage"], object]
"""A receiver of messages. It must not block."""


class Subscriptions:
    """All subscriptions; matches are cached until a subscription changes. Only the backend and rules use wildcards."""

    def __init__(self) -> None:
        self._exact: dict[str, set[Subscriber]] = {}
        self._wildcards: dict[str, set[Subscriber]] = {}
        self._match_cache: dict[str, set[Subscriber]] = {}

    def add(self, subscriber: Subscriber, topic_filter: str) -> None:
        """Subscribe."""
        self._filters(topic_filter).setdefault(topic_filter, set()).add(subscriber)
        self._match_cache.clear()

    def remove(self, subscriber: Subscriber, topic_filter: str) -> None:
        """Unsubscribe."""
        filters = self._filters(topic_filter)
        filters.get(topic_filter, set()).discard(subscriber)
        if not filters.get(topic_filter):
            filters.pop(topic_filter, None)
        self._match_cache.clear()

    def match(self, topic: str) -> set[Subscriber]:
        """Return the subscribers with a matching filter."""
        subscribers = self._match_cache.get(topic)
        if subscribers is None:
            wildcards = (each for pattern, each in self._wildcards.items() if matches(pattern, topic))
            if len(self._match_cache) >= _CACHED_TOPICS:
                self._match_cache.clear()
            subscribers = self._match_cache[topic] = self._exact.get(topic, set()).union(*wildcards)
        return subscribers

    def _filters(self, topic_filter: str) -> dict[str, set[Subscriber]]:
        return self._wildcards if has_wildcard(topic_filter) else self._exact
