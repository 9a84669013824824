"""Refusal of parameters with many unknown fields or many values, at a cost that does not grow with their number."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from shared.rpc.errors import FieldProblem, InvalidParams
from shared.rpc.strict_json import encodable

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

MAX_NAMED: Final = 20
MAX_VALUES: Final = 100_000
"""The values of parameters at any depth. No method needs more, and each is copied several times on its way."""
_BITS_A_VALUE: Final = 100
"""A number of thousands of digits counts as many values: the time to write it grows with the square of its digits."""
_MAX_NAME: Final = 50


def many_unknown_fields(given: Mapping[str, Any], known: Collection[str], tolerated: int = MAX_NAMED) -> str | None:
    """Describe the unknown fields if they are more than `tolerated`, else return None."""
    count = len(given) - sum(name in given for name in known)
    if count <= tolerated:
        return None
    return f"has {count} unknown fields; the first: {_first(name for name in given if name not in known)}"


def crowded_field(params: Mapping[str, Any]) -> str | None:
    """Return the field at which the values of `params` exceed `MAX_VALUES`, or None. No more are counted."""
    left = MAX_VALUES - len(params)
    for name, value in params.items():
        pending = [value]
        while pending:
            each = pending.pop()
            if isinstance(each, dict | list):
                left -= len(each)
                if left < 0:
                    break
                pending.extend(each.values() if isinstance(each, dict) else each)
            elif isinstance(each, int):
                left -= each.bit_length() // _BITS_A_VALUE
        if left < 0:
            return name
    return None


def refuse_large_params(params: Mapping[str, Any], known: Collection[str] | None = None) -> None:
    """Raise InvalidParams if the parameters have many unknown fields, or many values. The method reports the rest."""
    problem = many_unknown_fields(params, known) if known is not None else None
    if problem:
        raise InvalidParams(FieldProblem(field="params", message=problem))
    field = crowded_field(params)
    if field is not None:
        fields = f"; the first fields: {_first(params[field])}" if isinstance(params[field], dict) else ""
        message = f"has too many values; parameters hold at most {MAX_VALUES:,}{fields}"
        raise InvalidParams(FieldProblem(field=encodable(field[:_MAX_NAME]), message=message))


def _first(names: Iterable[str]) -> str:
    return ", ".join(encodable(name[:_MAX_NAME]) for name in islice(names, MAX_NAMED))
