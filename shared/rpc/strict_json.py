"""Strict JSON for every endpoint."""

import json
from typing import Any, Final

from shared.rpc.errors import FieldProblem, InvalidParams, ParseError

MAX_DEPTH: Final = 64


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


def require_text(params: Any) -> None:
    """Raise InvalidParams, with the field, if a string in the parameters holds a lone surrogate."""
    if not is_encodable(params):
        path = _first_unencodable(params, "")
        raise InvalidParams(FieldProblem(field=path, message="holds a lone surrogate, which is not text"))


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


def _first_unencodable(value: Any, path: str) -> str:
    if isinstance(value, str):
        return path or "params"
    children = value.items() if isinstance(value, dict) else enumerate(value)
    name, child = next(each for each in children if not (is_encodable(each[0]) and is_encodable(each[1])))
    child_path = f"{path}.{encodable(str(name))}".removeprefix(".")
    return child_path if not is_encodable(name) else _first_unencodable(child, child_path)
