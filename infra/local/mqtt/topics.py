"""Topic names, and the filters that match them."""

from __future__ import annotations


def is_topic(topic: str) -> bool:
    """Whether a message may be published under this name."""
    return bool(topic) and "+" not in topic and "#" not in topic and "\0" not in topic


def is_filter(topic_filter: str) -> bool:
    """Whether this may be subscribed to: wildcards stand alone in their level, '#' in the last."""
    if not topic_filter or "\0" in topic_filter:
        return False
    *levels, last = topic_filter.split("/")
    if last != "#":
        levels.append(last)
    return all(level == "+" or ("+" not in level and "#" not in level) for level in levels)


def has_wildcard(topic_filter: str) -> bool:
    """Whether the filter matches more than the topic of its own name."""
    return "+" in topic_filter or "#" in topic_filter


def matches(topic_filter: str, topic: str) -> bool:
    """Whether a filter matches as IoT Core has it: 'a/#' does not match 'a', and no wildcard matches a '$' in front."""
    wanted, levels = topic_filter.split("/"), topic.split("/")
    if topic.startswith("$") and has_wildcard(wanted[0]):
        return False
    if wanted[-1] == "#":
        wanted.pop()
        if len(levels) <= len(wanted):
            return False
        levels = levels[: len(wanted)]
    return len(wanted) == len(levels) and all(want in ("+", level) for want, level in zip(wanted, levels, strict=True))
