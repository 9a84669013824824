"""JSON-RPC error responses: to one request object, and to a request body that is refused as a whole."""

from typing import Any, Final

from api.error_formats import jsonrpc_error
from shared.rpc.errors import KhoError, ParseError
from shared.rpc.strict_json import is_encodable, parse

MAX_BATCH: Final = 50
MAX_ID_CHARACTERS: Final = 1024
"""An id is sent back: the answer to one that fills a request would be too large."""


def error_response(id_: Any, error: KhoError, server: str = "") -> dict[str, Any]:
    """Return the response with `error` to the request of this id."""
    return {"jsonrpc": "2.0", "error": jsonrpc_error(error, server), "id": id_}


def refusal(body: bytes, error: KhoError) -> Any:
    """Return the response to a body that is refused as a whole: `error` for each of its requests."""
    try:
        requests = parse(body)
    except ParseError:
        return error_response(None, error)
    if not isinstance(requests, list):
        return error_response(echoed_id(requests), error)
    if not 1 <= len(requests) <= MAX_BATCH:
        return error_response(None, error)
    return [error_response(echoed_id(each), error) for each in requests]


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
