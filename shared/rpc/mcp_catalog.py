"""What MCP clients are offered: tools, resources and prompts.

Declared beside the methods, gathered by `kho generate`, and read by the doors at run time: a tool is a method with a
`Tool`; resources and prompts stand in a server's package as `MCP_RESOURCES` and `MCP_PROMPTS`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

    from shared.rpc.caller import Role

FILE: Final = Path(__file__).with_name("mcp_catalog.json")

Effect = Literal["reads", "adds", "sets", "replaces", "removes", "acts"]
"""What a call does to what is stored, or that it acts on the world, which cannot be undone by writing.

Called twice with the same arguments, only `adds` and `acts` have a further effect.
"""


@dataclass(frozen=True, slots=True)
class McpTool:
    """A method as a model sees it; it is called as the seed calls it, without the server, unless `name` is given."""

    title: str
    effect: Effect
    description: str
    name: str = ""
    open_world: bool = False
    text: Callable[[Any], str] | None = None
    """What the model reads of a result, where that is not the result's JSON."""


def tool_annotations(effect: Effect, *, open_world: bool) -> dict[str, bool]:
    """What clients are told of a tool before they call it."""
    return {
        "readOnlyHint": effect == "reads",
        "destructiveHint": effect in ("replaces", "removes", "acts"),
        "idempotentHint": effect not in ("adds", "acts"),
        "openWorldHint": open_world,
    }


@dataclass(frozen=True, slots=True)
class McpResource:
    """A resource, or a template of many where `uri` has variables in braces.

    `read` is the method that reads it: by its `uri` where it takes one, else by the variables. `listing` lists those
    there are, in MCP's words, takes `prefix`, `limit` and `cursor`, and so completes the variable too.
    """

    uri: str
    name: str
    title: str
    description: str
    read: str
    listing: str = ""
    mime_type: str = "application/json"

    @property
    def is_template(self) -> bool:
        """Whether the URI has variables."""
        return "{" in self.uri


@dataclass(frozen=True, slots=True)
class McpPromptArgument:
    """What a prompt is given; without it, `default`."""

    name: str
    description: str
    required: bool = False
    default: str = ""


@dataclass(frozen=True, slots=True)
class McpPrompt:
    """A prompt: its text with the arguments in place of their names in braces, and a resource that it is about."""

    name: str
    title: str
    description: str
    text: str
    arguments: list[McpPromptArgument] = field(default_factory=list)
    resource: str = ""
    server: str = ""
    """Whose it is, as `kho generate` writes it."""


@dataclass(frozen=True, slots=True)
class McpToolEntry:
    """One tool: how MCP describes it, and the method that a call reaches."""

    described: dict[str, Any]
    method: str
    role: Role
    anonymous: bool = False
    by_name: bool = False
    """Whether the method runs several tools, and takes which of them beside its arguments."""

    @property
    def name(self) -> str:
        """What the tool is called."""
        return str(self.described["name"])


@dataclass(frozen=True, slots=True)
class McpCatalog:
    """Everything that MCP clients are offered."""

    tools: list[McpToolEntry]
    resources: list[McpResource]
    prompts: list[McpPrompt]

    def of(self, server: str) -> McpCatalog:
        """What one server offers."""
        return McpCatalog(
            [each for each in self.tools if each.method.startswith(f"{server}/")],
            [each for each in self.resources if each.read.startswith(f"{server}/")],
            [each for each in self.prompts if each.server == server],
        )


def catalog_from_json(made: dict[str, Any]) -> McpCatalog:
    """The offers as `kho generate` writes them."""
    return McpCatalog(
        [McpToolEntry(**each) for each in made["tools"]],
        [McpResource(**each) for each in made["resources"]],
        [
            McpPrompt(**each | {"arguments": [McpPromptArgument(**argument) for argument in each["arguments"]]})
            for each in made["prompts"]
        ],
    )


@cache
def mcp_catalog() -> McpCatalog:
    """The offers that were made from the functions."""
    return catalog_from_json(json.loads(FILE.read_text(encoding="utf-8")))
