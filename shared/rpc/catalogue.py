"""The catalogue of methods: generated from the functions by `kho generate`, read by endpoints at run time."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from shared.rpc.caller import Role

FILE: Final = Path(__file__).with_name("catalogue.json")


@dataclass(frozen=True, slots=True)
class MethodEntry:
    """One method in the catalogue."""

    name: str
    function: str
    summary: str
    role: Role
    params: dict[str, Any]
    result: dict[str, Any]
    errors: list[str]
    anonymous: bool = False

    @property
    def server(self) -> str:
        """Return the name of the method's server."""
        return self.name.partition("/")[0]

    @property
    def fields(self) -> list[str]:
        """Return the parameters in the order of their declaration."""
        return list(self.params.get("properties", {}))


@dataclass(frozen=True, slots=True)
class ServerEntry:
    """One server with its tools, resources and prompts."""

    name: str
    summary: str
    tools: list[dict[str, Any]]
    resources: list[dict[str, Any]]
    prompts: list[dict[str, Any]]

    def capabilities(self) -> dict[str, Any]:
        """Return the server's capabilities."""
        return {"tools": self.tools, "resources": self.resources, "prompts": self.prompts}


@dataclass(frozen=True, slots=True)
class MethodCatalogue:
    """Every server and method."""

    servers: dict[str, ServerEntry]
    methods: dict[str, MethodEntry]


@cache
def catalogue() -> MethodCatalogue:
    """Return the generated catalogue."""
    record = json.loads(FILE.read_text(encoding="utf-8"))
    return MethodCatalogue(
        {server["name"]: ServerEntry(**server) for server in record["servers"]},
        {entry["name"]: MethodEntry(**entry) for entry in record["methods"]},
    )
