"""Policies of IoT Core, as the template has them and as IoT Core evaluates them."""

from __future__ import annotations

import re
from typing import Any

import yaml

from infra.local.template import FILE, TemplateLoader

ARN = "arn:aws:iot:local:000000000000"
RESOURCES: dict[str, dict[str, Any]] = yaml.load(FILE.read_text(), TemplateLoader)["Resources"]
PSEUDO = {"AWS::Partition": "aws", "AWS::Region": "local", "AWS::AccountId": "000000000000"}


def resolved(value: Any) -> Any:
    """A policy as CloudFormation hands it to IoT Core."""
    match value:
        case {"Fn::Sub": str(pattern)}:
            named = re.sub(r"\$\{([^!}]+)\}", lambda found: PSEUDO.get(found[1], "kho"), pattern)
            return named.replace("${!", "${")
        case dict():
            return {name: resolved(each) for name, each in value.items()}
        case list():
            return [resolved(each) for each in value]
    return value


def matches(pattern: str, resource: str, variables: dict[str, str]) -> bool:
    """Whether IoT Core's evaluation finds the resource in the pattern: `*` and `?` are wildcards where the policy has
    them, not where a variable's value does; `+` and `#` are characters like others; an unknown variable stands for
    nothing that matches."""
    parts = re.split(r"\$\{([^}]+)\}", pattern)
    made = ""
    for index, part in enumerate(parts):
        if index % 2:
            if part not in variables:
                return False
            made += re.escape(variables[part])
        else:
            made += re.escape(part).replace(r"\*", ".*").replace(r"\?", ".")
    return re.fullmatch(made, resource, re.DOTALL) is not None


def allows(policy: dict[str, Any], action: str, resource: str, variables: dict[str, str]) -> bool:
    """Whether the policy allows it; nothing here is ever denied by a statement."""
    found = False
    for statement in policy["Statement"]:
        assert statement["Effect"] == "Allow"
        actions, resources = (
            [each] if isinstance(each, str) else each for each in (statement["Action"], statement["Resource"])
        )
        met = all(
            variables.get(name) == value for name, value in statement.get("Condition", {}).get("Bool", {}).items()
        )
        found |= met and action in actions and any(matches(each, resource, variables) for each in resources)
    return found
