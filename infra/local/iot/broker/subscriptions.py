"""Subscriptions: a tree of topic filters, and the subscribers that a topic matches."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from infra.local.iot.mqtt.topics import has_wildcard

if TYPE_CHECKING:
    from collections.abc import Iterator

    from infra.local.iot.broker.messages import BrokerMessage
    from infra.local.iot.mqtt.packets import SubscriptionRequest

_CACHED_TOPICS: Final = 8_192


class Subscriber(Protocol):
    """A receiver of messages that match its filters."""

    def receive(self, message: BrokerMessage, request: SubscriptionRequest) -> None:
        """Handle a message without blocking; it may be dropped."""


Match = tuple["Subscriber", "SubscriptionRequest"]


@dataclass(slots=True)
class _Node:
    """A level of the tree of filters with wildcards."""

    children: dict[str, _Node] = field(default_factory=dict)
    subscribers: dict[Subscriber, SubscriptionRequest] = field(default_factory=dict)


class Subscriptions:
    """All subscriptions; matches are cached until a subscription changes."""

    def __init__(self) -> None:
        self._exact: dict[str, dict[Subscriber, SubscriptionRequest]] = {}
        self._root = _Node()
        self._match_cache: dict[str, tuple[Match, ...]] = {}

    def add(self, subscriber: Subscriber, request: SubscriptionRequest) -> None:
        """Subscribe, replacing an earlier subscription to the same filter."""
        topic_filter = request.topic_filter
        if has_wildcard(topic_filter):
            node = self._root
            for level in topic_filter.split("/"):
                node = node.children.setdefault(level, _Node())
            node.subscribers[subscriber] = request
        else:
            self._exact.setdefault(topic_filter, {})[subscriber] = request
        self._match_cache.clear()

    def remove(self, subscriber: Subscriber, topic_filter: str) -> None:
        """Unsubscribe."""
        if has_wildcard(topic_filter):
            self._prune(self._root, topic_filter.split("/"), subscriber)
        elif topic_filter in self._exact:
            self._exact[topic_filter].pop(subscriber, None)
            if not self._exact[topic_filter]:
                del self._exact[topic_filter]
        self._match_cache.clear()

    def match(self, topic: str) -> tuple[Match, ...]:
        """Return each matching subscriber once, with its request of the highest QoS."""
        matches = self._match_cache.get(topic)
        if matches is None:
            best: dict[Subscriber, SubscriptionRequest] = dict(self._exact.get(topic, {}))
            for node in self._nodes(self._root, topic.split("/"), 0):
                for subscriber, request in node.subscribers.items():
                    current = best.get(subscriber)
                    if current is None or current.qos < request.qos:
                        best[subscriber] = request
            if len(self._match_cache) >= _CACHED_TOPICS:
                self._match_cache.clear()
            matches = self._match_cache[topic] = tuple(best.items())
        return matches

    def _nodes(self, node: _Node, levels: list[str], depth: int) -> Iterator[_Node]:
        if depth == len(levels):
            yield node
            return
        wildcards_match = depth > 0 or not levels[0].startswith("$")
        if wildcards_match and "#" in node.children:
            yield node.children["#"]
        if levels[depth] in node.children:
            yield from self._nodes(node.children[levels[depth]], levels, depth + 1)
        if wildcards_match and "+" in node.children:
            yield from self._nodes(node.children["+"], levels, depth + 1)

    def _prune(self, node: _Node, levels: list[str], subscriber: Subscriber) -> None:
        if not levels:
            node.subscribers.pop(subscriber, None)
        elif levels[0] in node.children:
            child = node.children[levels[0]]
            self._prune(child, levels[1:], subscriber)
            if not child.subscribers and not child.children:
                del node.children[levels[0]]
