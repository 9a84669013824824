"""`kho` with time limits that no machine reaches by being slow."""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

from infra.cli import main
from infra.local.environment import prepare
from tests.helpers.limits import LIMITS, LONG_SECONDS

if TYPE_CHECKING:
    from infra.local.template import Template

_QDRANT: Final = "shared.knowledge.store.server"
"""Takes a second to import, for servers of a cluster alone."""


def _prepare_and_raise_limits(template: Template, **options: Any) -> None:
    prepare(template, **options)  # modules that have limits read their settings as they are imported
    for function in template.functions.values():
        object.__setattr__(function, "timeout", LONG_SECONDS)
    for name, seconds in LIMITS.items():
        module, _, attribute = name.rpartition(".")
        if module != _QDRANT or os.environ.get("KHO_QDRANT_URL"):
            setattr(importlib.import_module(module), attribute, seconds)


if __name__ == "__main__":
    with patch.object(main, "prepare", _prepare_and_raise_limits):
        main.app()
