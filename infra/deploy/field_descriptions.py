"""Descriptions of fields, for the reference pages and for the tools' schemas."""

from pathlib import Path
from typing import Any, Final

import yaml

_FIELDS: Final[dict[str, str]] = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))


def field_description(server: str, path: str, schema: dict[str, Any]) -> str:
    """Return the description of the field at `path`: the schema's own, or the one in the file, if there is one."""
    names = path.replace("[]", "").split(".")
    suffixes = [".".join(names[start:]) for start in range(len(names))]
    known = (_FIELDS.get(key) for suffix in suffixes for key in (f"{server}:{suffix}", suffix))
    return schema.get("description") or next(filter(None, known), "")
