"""JSON-RPC request objects: their ids, and what makes one invalid at every endpoint."""

from typing import Any, Final

from shared.rpc.strict_json import is_encodable

MAX_BATCH: Final = 50
MAX_ID_CHARACTERS: Final = 1024
"""An id is sent back: the answer to one that fills a request would be too large."""


def is_id(value: Any) -> bool:
    """Return True if `value` can be the id of a request."""
    if isinstance(value, str):
        return len(value) <= MAX_ID_CHARACTERS and is_encodable(value)
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def echoed_id(item: Any) -> Any:
    """Return the id of a request object that may be invalid, None without a valid id."""
    id_ = item.get("id") if isinstance(item, dict) else None
    return id_ if is_id(id_) else None


def principal_problem(message: Any) -> str | None:
    """Return the reason to refuse a message that describes its caller, or None."""
    if isinstance(message, dict) and "principal" in message:
        return "'principal' is not a member of a request here: the caller comes from the credentials alone"
    return None
