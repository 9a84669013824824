"""`kho` with one more function, `POST /busy`, which uses a core for ever."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

from infra.clients.cli import serve
from infra.clients.cli.main import app
from infra.local.template import FunctionDefinition, Route, load
from shared.platform.runtime import runtime

if TYPE_CHECKING:
    from infra.local.template import Template

PROGRAM: Final = "tests.e2e.local.busy_server"
BUSY: Final = "busy"
"""The file in the data folder that exists while the function runs."""
_SECONDS: Final = 3600.0


def handler(_event: Any, _context: Any) -> None:
    """Never return. A file in the data folder shows that it runs."""
    Path(runtime.environment["KHO_LOG_FILE"]).with_name(BUSY).touch()
    while True:
        sum(range(1000))


def _load() -> Template:
    template = load()
    function = FunctionDefinition(BUSY, f"{PROGRAM}.handler", _SECONDS)
    return replace(
        template,
        functions=template.functions | {BUSY: function},
        routes=[*template.routes, Route("POST", "/busy", BUSY, authorized=False)],
    )


if __name__ == "__main__":
    with patch.object(serve, "load", _load):
        app()
