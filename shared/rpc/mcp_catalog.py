"""The MCP catalog: tools, resources and prompts.

A tool is a method with an `McpTool`; a server's package declares resources and prompts as `MCP_RESOURCES` and
`MCP_PROMPTS`. `kho generate` collects them in a file, which the MCP endpoints read at run time.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from shared.rpc.caller import Role

FILE: Final = Path(__file__).with_name("mcp_catalog.json")


class Toolset(NamedTuple):
    """A subset of the catalog that `/mcp/{toolset}` offers: its subject, and the beginnings of its methods' names.

    It takes no arguments that are `refused`.
    """

    subject: str
    methods: tuple[str, ...]
    refused: tuple[str, ...] = ()


TOOLSETS: Final = {
    "documents": Toolset("a tree of documents that agents share", ("agent-data/",)),
    "memory": Toolset(
        "the conversations of a chatbot, and a search of the web", ("memory-server/", "tool-server/tools/")
    ),
    "knowledge": Toolset("a knowledge base of documents", ("research-agent/",)),
    "experiences": Toolset("problems that agents have solved", ("recall-kit/",)),
    "devices": Toolset("the tools of a fleet of devices", ("device-server/",)),
    # A connector of documents must not receive people's conversations.
    "search": Toolset(
        "all documents, to search and to read", ("tool-server/search", "tool-server/fetch"), ("include_messages",)
    ),
}

Effect = Literal["reads", "adds", "sets", "replaces", "edits", "removes", "acts"]
"""The effect of a call on stored data; `acts` is an effect on the world, which no write can undo.

Only `adds`, `edits` and `acts` have a further effect when they are repeated with the same arguments.
"""


@dataclass(frozen=True, slots=True)
class McpTool:
    """A method as a tool for models; its default `name` is the method's without the server."""

    title: str
    effect: Effect
    description: str
    name: str = ""
    open_world: bool = False
    hidden: tuple[str, ...] = ()
    """Parameters that are not offered to models."""
    text: Callable[[Any], str] | None = None
    """Renders a result for the model, if not as JSON."""
    defaults: dict[str, Any] = field(default_factory=dict)
    """Defaults of parameters, if models have others than the method."""
    returns_content: bool = False
    """True if the method's result is MCP content and `isError`, which is passed on as it is."""


def tool_annotations(effect: Effect, *, open_world: bool) -> dict[str, bool]:
    """Return MCP's annotations of a tool."""
    return {
        "readOnlyHint": effect == "reads",
        "destructiveHint": effect in ("replaces", "edits", "removes", "acts"),
        "idempotentHint": effect not in ("adds", "edits", "acts"),
        "openWorldHint": open_world,
    }


@dataclass(frozen=True, slots=True)
class McpResource:
    """A resource, or a resource template if `uri` has variables in braces.

    The method `read` reads it: by its `uri` if it takes one, else by the variables. The method `listing` lists the
    resources in MCP's format. It takes `prefix`, `limit` and `cursor`, and so completes the variable too.
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
        """Return True if the URI has variables."""
        return "{" in self.uri


@dataclass(frozen=True, slots=True)
class McpPromptArgument:
    """One argument of a prompt."""

    name: str
    description: str
    required: bool = False
    default: str = ""


@dataclass(frozen=True, slots=True)
class McpPrompt:
    """A prompt: its text, with the arguments' names in braces, and the resource that it is about."""

    name: str
    title: str
    description: str
    text: str
    arguments: list[McpPromptArgument] = field(default_factory=list)
    resource: str = ""
    server: str = ""
    """The prompt's server, which `kho generate` fills in."""


@dataclass(frozen=True, slots=True)
class McpToolEntry:
    """One tool: its description in MCP's format, and the method that it calls."""

    described: dict[str, Any]
    method: str
    role: Role
    anonymous: bool = False
    by_name: bool = False
    """True if the method runs several tools and takes the tool's name as a parameter."""
    defaults: dict[str, Any] = field(default_factory=dict)
    returns_content: bool = False
    refused: tuple[str, ...] = ()
    """Arguments that the toolset does not take."""

    @property
    def name(self) -> str:
        """Return the tool's name."""
        return str(self.described["name"])


@dataclass(frozen=True, slots=True)
class McpCatalog:
    """Every tool, resource and prompt."""

    tools: list[McpToolEntry]
    resources: list[McpResource]
    prompts: list[McpPrompt]

    def of_toolset(self, toolset: Toolset) -> McpCatalog:
        """Return the catalog of a toolset."""
        catalog = self.of(*toolset.methods)
        return replace(catalog, tools=[replace(each, refused=toolset.refused) for each in catalog.tools])

    def of(self, *methods: str) -> McpCatalog:
        """Return the catalog of the methods whose names begin with one of `methods`."""
        return McpCatalog(
            [each for each in self.tools if each.method.startswith(methods)],
            [each for each in self.resources if each.read.startswith(methods)],
            [each for each in self.prompts if f"{each.server}/".startswith(methods)],
        )


@cache
def mcp_catalog() -> McpCatalog:
    """Return the generated catalog."""
    record = json.loads(FILE.read_text(encoding="utf-8"))
    return McpCatalog(
        [_tool_entry(each) for each in record["tools"]],
        [McpResource(**each) for each in record["resources"]],
        [
            McpPrompt(**each | {"arguments": [McpPromptArgument(**argument) for argument in each["arguments"]]})
            for each in record["prompts"]
        ],
    )


def _tool_entry(record: dict[str, Any]) -> McpToolEntry:
    """Complete a tool with what the catalogue of methods knows of its method."""
    from shared.rpc.catalogue import catalogue

    method = catalogue().methods[record["method"]]
    return McpToolEntry(**record, role=method.role, anonymous=method.anonymous)
