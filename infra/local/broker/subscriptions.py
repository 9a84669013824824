"""Who gets what: filters, and the subscribers that a topic reaches through them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from infra.local.mqtt.topics import has_wildcard

if TYPE_CHECKING:
    from collections.abc import Iterator

    from infra.local.broker.messages import BrokerMessage
    from infra.local.mqtt.packets import SubscriptionRequest

_CACHED_TOPICS: Final = 8_192


class Subscriber(Protocol):
    """Takes what its filters match."""

    def receive(self, message: BrokerMessage, request: SubscriptionRequest) -> None:
        """Take a message; it may be dropped, but nothing may wait."""


Match = tuple["Subscriber", "SubscriptionRequest"]


@dataclass(slots=True)
class _Node:
    """A level of the filters that have wildcards."""

    below: dict[str, _Node] = field(default_factory=dict)
    here: dict[Subscriber, SubscriptionRequest] = field(default_factory=dict)


class Subscriptions:
    """All subscriptions; a topic that was matched is found again at once until one changes."""

    def __init__(self) -> None:
        self._exact: dict[str, dict[Subscriber, SubscriptionRequest]] = {}
        self._root = _Node()
        self._matched: dict[str, tuple[Match, ...]] = {}

    def add(self, subscriber: Subscriber, request: SubscriptionRequest) -> None:
        """Subscribe, in place of an earlier subscription to the same filter."""
        topic_filter = request.topic_filter
        if has_wildcard(topic_filter):
            node = self._root
            for level in topic_filter.split("/"):
                node = node.below.setdefault(level, _Node())
            node.here[subscriber] = request
        else:
            self._exact.setdefault(topic_filter, {})[subscriber] = request
        self._matched.clear()

    def remove(self, subscriber: Subscriber, topic_filter: str) -> None:
        """Unsubscribe."""
        if has_wildcard(topic_filter):
            self._prune(self._root, topic_filter.split("/"), subscriber)
        elif topic_filter in self._exact:
            self._exact[topic_filter].pop(subscriber, None)
            if not self._exact[topic_filter]:
                del self._exact[topic_filter]
        self._matched.clear()

    def match(self, topic: str) -> tuple[Match, ...]:
        """Each subscriber that the topic reaches once, by the filter that grants it most."""
        found = self._matched.get(topic)
        if found is None:
            best: dict[Subscriber, SubscriptionRequest] = dict(self._exact.get(topic, {}))
            for node in self._nodes(self._root, topic.split("/"), 0):
                for subscriber, request in node.here.items():
                    known = best.get(subscriber)
                    if known is None or known.qos < request.qos:
                        best[subscriber] = request
            if len(self._matched) >= _CACHED_TOPICS:
                self._matched.clear()
            found = self._matched[topic] = tuple(best.items())
        return found

    def _nodes(self, node: _Node, levels: list[str], depth: int) -> Iterator[_Node]:
        if depth == len(levels):
            yield node
            return
        wild = depth > 0 or not levels[0].startswith("$")
        if wild and "#" in node.below:
            yield node.below["#"]
        if levels[depth] in node.below:
            yield from self._nodes(node.below[levels[depth]], levels, depth + 1)
        if wild and "+" in node.below:
            yield from self._nodes(node.below["+"], levels, depth + 1)

    def _prune(self, node: _Node, levels: list[str], subscriber: Subscriber) -> None:
        if not levels:
            node.here.pop(subscriber, None)
        elif levels[0] in node.below:
            child = node.below[levels[0]]
            self._prune(child, levels[1:], subscriber)
            if not child.here and not child.below:
                del node.below[levels[0]]
