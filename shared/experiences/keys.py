"""Where each part of an experience lies in the table. No tenant is in any key: experiences are everyone's.

pk                    sk        item
content#{xx}          {id}      what the experience says; xx, the first of its id, spreads them over partitions
standing#{xx}         {id}      how often queries have returned it, and when last: changed often, and so small
served#{x}            {served}  what one query has returned and nobody has counted yet
submissions#{minute}  total     how many experiences callers who are no writers have submitted in that minute
"""

from __future__ import annotations

from typing import Final

CONTENT: Final = "content#"
SERVED: Final = "served#"


def content(experience_id: str) -> tuple[str, str]:
    """The key of what an experience says."""
    return f"{CONTENT}{experience_id[:2]}", experience_id


def standing(experience_id: str) -> tuple[str, str]:
    """The key of how often an experience was returned."""
    return f"standing#{experience_id[:2]}", experience_id


def served(served_id: str) -> tuple[str, str]:
    """The key of what one query has returned."""
    return f"{SERVED}{served_id[:1]}", served_id


def submissions(minute: int) -> tuple[str, str]:
    """The key of how many submissions of callers who are no writers a minute has seen."""
    return f"submissions#{minute}", "total"
