"""The sizes of a device's schema and of arguments. Their product bounds the work of a validation before it begins."""

from typing import Any, Final
from urllib.parse import unquote

from shared.rpc.strict_json import value_size

_MAX_INDEX_DIGITS: Final = 7
_MAX_SIZE: Final = 5_000
_MAX_REFERENCES: Final = 32
"""References that lead one to the next."""
_REEVALUATING: Final = ("unevaluatedProperties", "unevaluatedItems")
_REEVALUATIONS: Final = 4
"""The times that parts next to these keywords count: validators evaluate them again, at each level of nesting."""
_DYNAMIC: Final = ("$dynamicRef", "$recursiveRef")


class UnboundedSchemaError(ValueError):
    """The schema is recursive, or refers to something else than a part of itself."""


def schema_size(schema: dict[str, Any]) -> int:
    """Return the size of a schema in which each reference is replaced by the part that it names."""
    return _SchemaSize(schema).of(schema, ())


def require_small(schema: dict[str, Any]) -> int:
    """Return the size of a schema. Raise UnboundedSchemaError if it is larger than that of any board."""
    size = schema_size(schema)
    if size > _MAX_SIZE:
        raise UnboundedSchemaError
    return size


class _SchemaSize:
    def __init__(self, schema: dict[str, Any]) -> None:
        self._schema = schema
        self._sizes: dict[str, int] = {}

    def of(self, part: Any, references: tuple[str, ...]) -> int:
        """Return the size of a part to which these references lead."""
        if isinstance(part, list):
            return 1 + sum(self.of(each, references) for each in part)
        if not isinstance(part, dict):
            return value_size(part)
        if any(isinstance(part.get(name), str) for name in _DYNAMIC) or (part is not self._schema and _is_base(part)):
            raise UnboundedSchemaError
        size = value_size(list(part)) + sum(self.of(each, references) for each in part.values())
        if isinstance(part.get("$ref"), str):
            size += self._of_reference(part["$ref"], references)
        return size * (1 if part.keys().isdisjoint(_REEVALUATING) else _REEVALUATIONS)

    def _of_reference(self, reference: str, references: tuple[str, ...]) -> int:
        if reference in references or len(references) == _MAX_REFERENCES:
            raise UnboundedSchemaError
        if reference not in self._sizes:
            self._sizes[reference] = self.of(self._target(reference), (*references, reference))
        return self._sizes[reference]

    def _target(self, reference: str) -> Any:
        """Return the part that a JSON pointer names, such as `#/$defs/color`."""
        root, *steps = unquote(reference).split("/")
        part: Any = self._schema
        for step in steps:
            if isinstance(part, list) and step.isdecimal() and len(step) <= _MAX_INDEX_DIGITS and int(step) < len(part):
                part = part[int(step)]
            elif isinstance(part, dict) and (name := step.replace("~1", "/").replace("~0", "~")) in part:
                part = part[name]
            else:
                raise UnboundedSchemaError
        if root != "#":
            raise UnboundedSchemaError
        return part


def _is_base(part: dict[str, Any]) -> bool:
    """Return True if references inside of the part are relative to it."""
    return isinstance(part.get("$id"), str)
