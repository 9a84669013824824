"""Names that clients give themselves, made safe to show: no control characters, no hidden or look-alike letters."""

import unicodedata
from typing import Final

from shared.rpc.unicode_forms import normalize

MAX_NAME: Final = 80
_MAX_GIVEN: Final = 10_000
"""The characters of a given name that are read."""
_LOOK_ALIKE: Final = ("ARMENIAN", "CHEROKEE", "COPTIC", "CYRILLIC", "DESERET", "GREEK", "LISU", "MATHEMATICAL")
"""Scripts with letters that look like Latin ones."""


def display_name(name: str) -> str:
    """Return the name without control, format and unassigned characters, compatibility forms replaced."""
    normal = normalize("NFKC", name[:_MAX_GIVEN].encode("utf-8", "replace").decode())
    visible = "".join(each if each.isprintable() else " " for each in normal)
    return " ".join(visible.split())[:MAX_NAME]


def look_alike_scripts(name: str) -> list[str]:
    """Return the names of the scripts in `name` whose letters can pass for Latin ones."""
    scripts = {unicodedata.name(each, "").partition(" ")[0] for each in name if not each.isascii()}
    return sorted(script.title() for script in scripts & set(_LOOK_ALIKE))
