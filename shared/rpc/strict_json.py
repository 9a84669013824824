"""Strict JSON for every endpoint."""

import json
import re
from typing import Any, Final

from shared.rpc.errors import FieldProblem, InvalidParams, ParseError

MAX_DEPTH: Final = 64
_SURROGATE_ESCAPE: Final = re.compile(rb"\\u[dD][89a-fA-F]")


def parse(raw: bytes) -> Any:
    """Parse one JSON text: UTF-8, at most 64 levels deep, without NaN and infinity."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ParseError(details={"reason": f"byte {error.start} is not UTF-8"}) from None
    try:
        value = json.loads(text, parse_constant=_refuse_constant, parse_float=_finite)
    except json.JSONDecodeError as error:
        reason = f"line {error.lineno}, column {error.colno}: {error.msg}"
        raise ParseError(details={"reason": reason}) from None
    except RecursionError:
        raise _too_deep() from None
    except ValueError as error:
        # int() refuses thousands of digits with a message about Python; ours is about the number.
        reason = str(error) if isinstance(error, _NumberError) else "a number has too many digits"
        raise ParseError(details={"reason": reason}) from None
    if text.count("[") + text.count("{") > MAX_DEPTH and _deeper_than(value, MAX_DEPTH):
        raise _too_deep()
    return value


def compact(value: Any) -> str:
    """Encode `value` as JSON without spaces."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def encodable(text: str) -> str:
    """Escape lone surrogates in `text`, which cannot be encoded."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def is_encodable(value: Any) -> bool:
    """Return True if no string inside `value` holds a lone surrogate."""
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def require_text(params: Any, raw: bytes | None = None) -> None:
    """Raise InvalidParams, with the field, if a string in the parameters holds a lone surrogate.

    Only escapes in the JSON text `raw` make surrogates: without any, the parameters are not searched.
    """
    if raw is not None and not _SURROGATE_ESCAPE.search(raw):
        return
    path = _unencodable(params)
    if path is not None:
        field = encodable(".".join(path)) or "params"
        raise InvalidParams(FieldProblem(field=field, message="holds a lone surrogate, which is not text"))


class _NumberError(ValueError):
    pass


def _too_deep() -> ParseError:
    return ParseError(details={"reason": f"nested deeper than {MAX_DEPTH} levels"})


def _refuse_constant(name: str) -> Any:
    raise _NumberError(f"{name} is not JSON")


def _finite(literal: str) -> float:
    number = float(literal)
    if number - number != 0:
        raise _NumberError("a number is too large")
    return number


def _deeper_than(value: Any, levels: int) -> bool:
    level = [value]
    for _ in range(levels):
        level = [child for parent in level for child in _children(parent)]
        if not level:
            return False
    return any(isinstance(item, dict | list) for item in level)


def _children(parent: Any) -> Any:
    if isinstance(parent, dict):
        return parent.values()
    return parent if isinstance(parent, list) else ()


def _unencodable(value: Any) -> tuple[str, ...] | None:
    """Return the path of the first string that cannot be encoded, or None."""
    if isinstance(value, str):
        return None if value.isascii() or is_encodable(value) else ()
    if not isinstance(value, dict | list):
        return None
    for name, child in value.items() if isinstance(value, dict) else enumerate(value):
        path = None if isinstance(name, int) else _unencodable(name)
        path = _unencodable(child) if path is None else path
        if path is not None:
            return str(name), *path
    return None
