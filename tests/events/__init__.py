"""One event a function, as `sam local invoke <function> -e tests/events/<name>.json` takes it.

All are of one tenant, whose key is known to nobody's deployment; `make rie` runs each, on data that it prepares.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent
TENANT: Final = "acme"
KEY: Final = f"kho_{'0' * 16}_{'0' * 64}"
DEVICE: Final = "kitchen"
PASSWORD: Final = "0" * 64


def event(function: str) -> bytes:
    """The event of a function."""
    return (FOLDER / f"{function}.json").read_bytes()
