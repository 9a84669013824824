"""Each function's settings in the template."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

from infra.local.template import FILE, TemplateLoader, load
from shared.search.embedding.function import BULK_FUNCTION, URGENT_FUNCTION
from workers.wake_webhooks import FUNCTION as DELIVERY

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class DeployedFunction:
    """One function as deployed."""

    name: str
    logical: str
    handler: str
    layers: tuple[str, ...]
    memory_mb: int
    timeout: float
    variables: frozenset[str]
    """The names of its environment variables."""
    trigger: str
    """The trigger: HTTP, a stream, a rule, the gateway's authorization, or other functions, waiting or not."""


def environment_of(function: DeployedFunction, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without the variables that only other functions declare."""
    others = load().environment.keys() - function.variables
    return {name: value for name, value in environment.items() if name not in others}


def deployed_functions() -> list[DeployedFunction]:
    """Return every function of the template, in its order."""
    document: dict[str, Any] = yaml.load(FILE.read_text(encoding="utf-8"), TemplateLoader)
    usual = document["Globals"]["Function"]
    template = load()
    triggers = {route.function: "HTTP" for route in template.routes}
    triggers |= {stream.function: "stream" for stream in template.streams}
    triggers |= {rule.function: "rule" for rule in template.rules}
    triggers |= dict.fromkeys((URGENT_FUNCTION, BULK_FUNCTION), "functions")
    triggers |= {template.authorizer: "authorizer", DELIVERY: "asynchronous"}
    functions = []
    for logical, resource in document["Resources"].items():
        if resource["Type"] != "AWS::Serverless::Function":
            continue
        properties = resource["Properties"]
        name = properties["FunctionName"]["Fn::Sub"].removeprefix("${AWS::StackName}-")
        functions.append(
            DeployedFunction(
                name=name,
                logical=logical,
                handler=properties["Handler"],
                # A function's own layers come after the common ones.
                layers=tuple(layer["Ref"] for layer in [*usual["Layers"], *properties.get("Layers", [])]),
                memory_mb=properties.get("MemorySize", usual["MemorySize"]),
                timeout=template.functions[name].timeout,
                variables=template.functions[name].variables or frozenset(),
                trigger=triggers.get(name, "IoT Core"),
            )
        )
    return functions
