"""IoT Core policies as in the template, and IoT Core's evaluation of them."""

from __future__ import annotations

import re
from typing import Any

import yaml

from infra.local.template import FILE, TemplateLoader

ARN = "arn:aws:iot:local:000000000000"
RESOURCES: dict[str, dict[str, Any]] = yaml.load(FILE.read_text(), TemplateLoader)["Resources"]
PSEUDO = {"AWS::Partition": "aws", "AWS::Region": "local", "AWS::AccountId": "000000000000"}


def resolved(value: Any) -> Any:
    """Return a policy as CloudFormation passes it to IoT Core."""
    match value:
        case {"Fn::Sub": str(pattern)}:
            named = re.sub(r"\$\{([^!}]+)\}", lambda match: PSEUDO.get(match[1], "kho"), pattern)
            return named.replace("${!", "${")
        case dict():
            return {name: resolved(each) for name, each in value.items()}
        case list():
            return [resolved(each) for each in value]
    return value


def matches(pattern: str, resource: str, variables: dict[str, str]) -> bool:
    """Return True if IoT Core's evaluation matches the resource.

    `*` and `?` are wildcards in the policy but not in a variable's value. `+` and `#` are ordinary characters. An
    unknown variable matches nothing.
    """
    parts = re.split(r"\$\{([^}]+)\}", pattern)
    regex = ""
    for index, part in enumerate(parts):
        if index % 2:
            if part not in variables:
                return False
            regex += re.escape(variables[part])
        else:
            regex += re.escape(part).replace(r"\*", ".*").replace(r"\?", ".")
    return re.fullmatch(regex, resource, re.DOTALL) is not None


def allows(policy: dict[str, Any], action: str, resource: str, variables: dict[str, str]) -> bool:
    """Return True if the policy allows the action. No statement here denies anything."""
    allowed = False
    for statement in policy["Statement"]:
        assert statement["Effect"] == "Allow"
        actions, resources = (
            [each] if isinstance(each, str) else each for each in (statement["Action"], statement["Resource"])
        )
        met = all(
            variables.get(name) == value for name, value in statement.get("Condition", {}).get("Bool", {}).items()
        )
        allowed |= met and action in actions and any(matches(each, resource, variables) for each in resources)
    return allowed
