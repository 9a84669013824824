"""Topic names and topic filters."""


def is_topic(topic: str) -> bool:
    """Return True if the text is a valid topic name."""
    return bool(topic) and "+" not in topic and "#" not in topic and "\0" not in topic


def is_filter(topic_filter: str) -> bool:
    """Return True if the text is a valid filter: wildcards fill a level alone, '#' only the last one."""
    if not topic_filter or "\0" in topic_filter:
        return False
    *levels, last = topic_filter.split("/")
    if last != "#":
        levels.append(last)
    return all(level == "+" or ("+" not in level and "#" not in level) for level in levels)


def has_wildcard(topic_filter: str) -> bool:
    """Return True if the filter contains a wildcard."""
    return "+" in topic_filter or "#" in topic_filter


def matches(topic_filter: str, topic: str) -> bool:
    """Return True if the filter matches, as in IoT Core: 'a/#' excludes 'a', wildcards exclude a leading '$'."""
    pattern, levels = topic_filter.split("/"), topic.split("/")
    if topic.startswith("$") and has_wildcard(pattern[0]):
        return False
    if pattern[-1] == "#":
        pattern.pop()
        if len(levels) <= len(pattern):
            return False
        levels = levels[: len(pattern)]
    return len(pattern) == len(levels) and all(
        part in ("+", level) for part, level in zip(pattern, levels, strict=True)
    )
