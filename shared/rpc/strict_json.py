"""Strict JSON for every endpoint."""

import gc
import json
import re
from array import array
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from itertools import accumulate
from typing import Any, Final

from shared.rpc.errors import FieldProblem, InvalidParams, ParseError

MAX_DEPTH: Final = 64
_LARGE_BYTES: Final = 64 * 1024
_CHARACTERS_PER_VALUE: Final = 8
"""The characters of a text that count as one value: patterns are matched in linear time."""
_LONE_ESCAPE: Final = re.compile(
    rb"\\u[dD](?:[89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|[c-fC-F](?<!\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F]))"
)
"""Begins with literal characters, for which text is searched quickly."""
_STEPS: Final = bytes.maketrans(b"[{]}", b"\1\1\xff\xff")
_OTHER_BYTES: Final = bytes(set(range(256)) - set(b'[{]}"'))
_STRING: Final = re.compile(rb'"[^"]*"')
_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def parse(raw: bytes) -> Any:
    """Parse one JSON text: UTF-8, at most 64 levels deep, without NaN and infinity."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ParseError(details={"reason": f"byte {error.start} is not UTF-8"}) from None
    try:
        with _without_garbage_collection() if len(raw) > _LARGE_BYTES else nullcontext():
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
    if text.count("[") + text.count("{") > MAX_DEPTH and _depth(raw) > MAX_DEPTH:
        raise _too_deep()
    return value


def compact(value: Any) -> str:
    """Encode `value` as JSON without spaces."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def fits(value: Any, limit: int) -> bool:
    """Return whether `value` has at most `limit` bytes as compact JSON. No more than that is encoded."""
    characters = 0
    for chunk in _ENCODER.iterencode(value):
        characters += len(chunk)
        if characters > limit:
            return False
    return len(compact(value).encode("utf-8")) <= limit


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

    Only escapes in the JSON text `raw` make surrogates: without a lone one, the parameters are not searched.
    """
    if raw is not None and not _LONE_ESCAPE.search(raw):
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


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Pause the search for reference cycles. JSON has none, and its many new containers would start searches of all."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _depth(text: bytes) -> int:
    """Return the nesting of valid JSON, by its brackets outside of strings: a walk of its values would cost more."""
    unescaped = text.replace(rb"\\", b"").replace(rb"\"", b"")
    marks = unescaped.translate(_STEPS, _OTHER_BYTES).replace(b'""', b"")
    return max(accumulate(array("b", _STRING.sub(b"", marks))), default=0)


def _unencodable(value: Any) -> tuple[str, ...] | None:
    """Return the path of the first string that cannot be encoded, or None."""
    if isinstance(value, str):
        return () if _SURROGATE.search(value) else None
    if not isinstance(value, dict | list):
        return None
    for name, child in value.items() if isinstance(value, dict) else enumerate(value):
        path = None if isinstance(name, int) else _unencodable(name)
        path = _unencodable(child) if path is None else path
        if path is not None:
            return str(name), *path
    return None


def value_size(value: Any) -> int:
    """Return the number of values inside of a JSON value. Long texts count more than once."""
    size, pending = 0, [value]
    while pending:
        each = pending.pop()
        size += 1
        if isinstance(each, str):
            size += len(each) // _CHARACTERS_PER_VALUE
        elif isinstance(each, dict):
            pending += each.values()
            size += sum(len(name) for name in each) // _CHARACTERS_PER_VALUE
        elif isinstance(each, list):
            pending += each
    return size
