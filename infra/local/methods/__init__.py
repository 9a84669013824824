"""Methods that exist on one machine only: `kho serve` adds them to those of the template.

They are public like all others, at every endpoint and in `/openapi.json`. A deployed stack has no function of theirs.
`kho generate` writes their catalogue.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from infra.local.template import FunctionDefinition, Route
from shared.rpc.catalogue import MethodEntry, catalogue
from shared.rpc.invocation import TIME_LIMIT

if TYPE_CHECKING:
    from infra.local.template import Template

FILE: Final = Path(__file__).with_name("catalogue.json")


def add_methods(template: Template) -> Template:
    """Add the methods of one machine to this process's catalogue. Return the template with their functions."""
    functions, routes = dict(template.functions), list(template.routes)
    for each in json.loads(FILE.read_text(encoding="utf-8")):
        entry = MethodEntry(**each)
        catalogue().methods[entry.name] = entry
        module = entry.function.partition("-")[2]
        functions[entry.function] = FunctionDefinition(entry.function, f"{__name__}.{module}.handler", TIME_LIMIT)
        routes.append(Route("POST", f"/{entry.name}", entry.function, authorized=not entry.anonymous))
    return replace(template, functions=functions, routes=routes)
