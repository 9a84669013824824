"""Conversion between DynamoDB's attribute values and plain Python values."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any


def marshal(item: Mapping[str, Any]) -> dict[str, Any]:
    """Convert plain values to attribute values."""
    return {name: _to_wire(value) for name, value in item.items()}


def unmarshal(item: Mapping[str, Any]) -> dict[str, Any]:
    """Convert attribute values to plain values; whole numbers become ints, others Decimals."""
    return {name: _from_wire(value) for name, value in item.items()}


def _to_wire(value: Any) -> dict[str, Any]:
    match value:
        case str():
            return {"S": value}
        case bool():
            return {"BOOL": value}
        case int() | Decimal():
            return {"N": str(value)}
        case bytes():
            return {"B": value}
        case None:
            return {"NULL": True}
        case list():
            return {"L": [_to_wire(each) for each in value]}
        case dict():
            return {"M": marshal(value)}
    raise TypeError(f"a {type(value).__name__} cannot be an attribute")


def _from_wire(attribute: Mapping[str, Any]) -> Any:
    ((kind, value),) = attribute.items()
    match kind:
        case "N":
            return int(value) if value.removeprefix("-").isdecimal() else Decimal(value)
        case "NULL":
            return None
        case "L":
            return [_from_wire(each) for each in value]
        case "M":
            return unmarshal(value)
    return value
