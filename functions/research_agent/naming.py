"""How callers name collections and page through lists."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field, TypeAdapter, ValidationError

from shared.knowledge.models import Name
from shared.rpc.errors import FieldProblem, InvalidParams
from shared.rpc.method import WHOLE, problems

Names = Annotated[str, Field(max_length=4096, examples=["notes, papers"])]
"""Names of collections, parted by commas."""
Limit = Annotated[int, Field(ge=1, le=1000), WHOLE]
Cursor = Annotated[str, Field(min_length=1, max_length=4096)]

_NAME: Final[TypeAdapter[str]] = TypeAdapter(Name)


def named(names: str | None, field: str = "collections") -> list[str]:
    """The names in a list parted by commas; one that cannot be a name is refused."""
    given = [each.strip() for each in (names or "").split(",")]
    found: list[FieldProblem] = []
    for name in filter(None, given):
        try:
            _NAME.validate_python(name)
        except ValidationError as error:
            found += problems(error, field)
    if found:
        raise InvalidParams(*found)
    return list(dict.fromkeys(filter(None, given)))
