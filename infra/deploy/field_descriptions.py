"""Descriptions of fields, for the reference pages and for the tools' schemas."""

import re
from pathlib import Path
from typing import Any, Final

import yaml

_FIELDS: Final[dict[str, str]] = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))


def field_description(server: str, path: str, schema: dict[str, Any]) -> str:
    """Return the description of the field at `path`: the schema's own, or the one in the file, if there is one."""
    names = path.replace("[]", "").split(".")
    suffixes = [".".join(names[start:]) for start in range(len(names))]
    texts = (_FIELDS.get(key) for suffix in suffixes for key in (f"{server}:{suffix}", suffix))
    return schema.get("description") or next(filter(None, texts), "")


def describe_fields(server: str, schema: dict[str, Any], path: str = "") -> None:
    """Add the descriptions that tell more than the fields' names, for models that read the schema."""
    for name, field in schema.get("properties", {}).items():
        choices = field.get("anyOf", ())
        description = field_description(server, path + name, field)
        if _words(description) - _words(path + name) and not any("description" in each for each in choices):
            field["description"] = description
        for inner in (field, *choices):
            describe_fields(server, inner.get("items", inner), f"{path}{name}.")


def _words(text: str) -> set[str]:
    return {word.rstrip("s") for word in re.split(r"[\W_]+", text.lower())} - {"", "the"}
