"""Pagination of lists: the parameters of a page, and opaque cursors."""

import base64
import hashlib
import json
from typing import Annotated, Any, Final

from pydantic import Field

from shared.rpc.errors import FieldProblem, InvalidParams
from shared.rpc.method import WHOLE, Params
from shared.rpc.strict_json import compact, is_encodable

_MAX_SORT_KEY_BYTES: Final = 1024
_MAX_NUMBER: Final = 2**53
_SCOPE_DIGITS: Final = 12

Limit = Annotated[int, Field(ge=1, le=1000), WHOLE]
Cursor = Annotated[str, Field(min_length=1, max_length=4096)]


class PageParams(Params):
    """Parameters of a paged list."""

    limit: Limit = 100
    cursor: Cursor | None = None


def encode(*position: str | int) -> str:
    """Encode `position` as a cursor."""
    return base64.urlsafe_b64encode(json.dumps(position).encode()).decode().rstrip("=")


def bind(cursor: str, *scope: Any) -> str:
    """Bind a cursor to the list that issued it: its method, tenant and filters."""
    return f"{cursor}.{hashlib.sha256(compact(scope).encode()).hexdigest()[:_SCOPE_DIGITS]}"


def unbind(cursor: str, *scope: Any) -> str:
    """Return a cursor that was bound to this list. Raise InvalidParams if it is another list's."""
    inner = cursor.rpartition(".")[0]
    if bind(inner, *scope) != cursor:
        raise stale()
    return inner


def decode(cursor: str, *types: type) -> list[Any]:
    """Decode the position of `cursor`. Raise InvalidParams if it is not a cursor of these types."""
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        position = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (ValueError, RecursionError):
        raise stale() from None
    if not isinstance(position, list) or [type(part) for part in position] != list(types):
        raise stale()
    if not all(_is_position(part) for part in position):
        raise stale()
    return position


def _is_position(part: str | int) -> bool:
    return is_encodable(part) and not part.startswith("\0") if isinstance(part, str) else 0 <= part <= _MAX_NUMBER


def decode_sort_key(cursor: str) -> str:
    """Decode a cursor whose position is a sort key. Raise InvalidParams if no key can be like that."""
    return require_sort_key(decode(cursor, str)[0])


def require_sort_key(key: str) -> str:
    """Return the sort key of a cursor's position. Raise InvalidParams if DynamoDB accepts none like that."""
    if not 0 < len(key.encode("utf-8")) <= _MAX_SORT_KEY_BYTES:
        raise stale()
    return key


def stale() -> InvalidParams:
    """Return the error for a cursor that this list never returned, or whose position no longer exists."""
    return InvalidParams(
        FieldProblem(field="cursor", message="is not a cursor of this list, or not any more; start again without one")
    )
