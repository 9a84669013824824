"""Refusal of objects with many unknown fields, at a cost that does not grow with their number."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from shared.rpc.errors import FieldProblem, InvalidParams
from shared.rpc.strict_json import encodable

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

MAX_NAMED: Final = 20
_MAX_NAME: Final = 50


def many_unknown_fields(given: Mapping[str, Any], known: Collection[str], tolerated: int = MAX_NAMED) -> str | None:
    """Describe the unknown fields if they are more than `tolerated`, else return None."""
    count = len(given) - sum(name in given for name in known)
    if count <= tolerated:
        return None
    names = islice((name for name in given if name not in known), MAX_NAMED)
    return f"has {count} unknown fields; the first: {', '.join(encodable(name[:_MAX_NAME]) for name in names)}"


def refuse_many_unknown_fields(params: Mapping[str, Any], known: Collection[str]) -> None:
    """Raise InvalidParams if the parameters have many unknown fields. The method itself reports a few."""
    problem = many_unknown_fields(params, known)
    if problem:
        raise InvalidParams(FieldProblem(field="params", message=problem))
