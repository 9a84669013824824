"""Keys of the experiences table. No key contains a tenant: experiences are shared among all.

pk             sk        item
content#{xx}   {id}      an experience; xx, the first two characters of its id, spreads them over partitions
standing#{xx}  {id}      its query counter, with the last time; apart because it changes often
served#{x}     {served}  the ids that one query has returned, still to be counted
"""

from typing import Final

CONTENT: Final = "content#"
QUERY_RESULT: Final = "served#"


def content(experience_id: str) -> tuple[str, str]:
    """Return the key of an experience."""
    return f"{CONTENT}{experience_id[:2]}", experience_id


def query_counter(experience_id: str) -> tuple[str, str]:
    """Return the key of an experience's query counter."""
    return f"standing#{experience_id[:2]}", experience_id


def query_result(result_id: str) -> tuple[str, str]:
    """Return the key of the ids that one query has returned."""
    return f"{QUERY_RESULT}{result_id[:1]}", result_id
