"""`kho` with time limits that a slow machine never reaches."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from infra.clients.cli import serve
from infra.clients.cli.main import app
from infra.local.environment import prepare
from infra.local.workers import nursery
from tests.helpers.limits import LIMITS, LONG_SECONDS

if TYPE_CHECKING:
    from pathlib import Path

    from infra.local.template import Template


def _prepare_and_raise_limits(template: Template, data: Path, **options: Any) -> None:
    prepare(template, data, **options)
    for function in template.functions.values():
        object.__setattr__(function, "timeout", LONG_SECONDS)
    raise_limits()


def raise_limits() -> None:
    """Raise the limits of this process for good."""
    for name, seconds in LIMITS.items():
        module, _, attribute = name.rpartition(".")
        setattr(importlib.import_module(module), attribute, seconds)


def main() -> None:
    """Run the command line."""
    with (
        patch.object(serve, "prepare", _prepare_and_raise_limits),
        patch.object(nursery, "MODULE", "tests.e2e.patient_nursery"),
    ):
        app()


if __name__ == "__main__":
    main()
