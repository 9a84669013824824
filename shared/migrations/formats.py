"""The formats of the tables: each table has an item with its own."""

from __future__ import annotations

import pkgutil
import re
from functools import cache
from typing import TYPE_CHECKING, Final

import shared.migrations
from shared.platform.config import config

if TYPE_CHECKING:
    from collections.abc import Mapping

TABLES: Final = ("access", "devices", "documents", "experiences", "knowledge", "limits", "memory")
FORMAT_KEY: Final = ("#format", "format")
"""The key of each table's item with its format. No tenant's name contains '#'."""
FIRST_FORMAT: Final = 1
"""The format of a table without migrations."""
_STEP: Final = re.compile(r"(?P<table>[a-z]+)_(?P<number>\d+)_[a-z_]+")


def table_name(table: str) -> str:
    """Return the configured name of a table."""
    name: str = getattr(config(), f"{table}_table")
    return name


@cache
def step_modules() -> Mapping[tuple[str, int], str]:
    """Return the modules of all migrations by table and format."""
    names = [module.name for module in pkgutil.iter_modules(shared.migrations.__path__)]
    steps = [match for name in names if (match := _STEP.fullmatch(name))]
    return {(step["table"], int(step["number"])): f"{shared.migrations.__name__}.{step[0]}" for step in steps}


def current_format(table: str) -> int:
    """Return the format in which this program writes a table."""
    return max([FIRST_FORMAT, *(number for name, number in step_modules() if name == table)])
