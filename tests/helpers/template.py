"""The template as it stands, and short words for what it says of a function."""

from __future__ import annotations

from typing import Any

import yaml

from infra.deploy import logs
from infra.local.template import FILE, TemplateLoader
from shared.rpc.catalogue import catalogue

FUNCTIONS = FILE.parent / "functions"
TEMPLATE = yaml.load(FILE.read_text(), TemplateLoader)
RESOURCES: dict[str, dict[str, Any]] = TEMPLATE["Resources"]
PARAMETERS = TEMPLATE["Parameters"]
LOGS = [each["Properties"] for each in yaml.safe_load(logs.FILE.read_text())["Resources"].values()]
LAMBDAS = {name: each["Properties"] for name, each in RESOURCES.items() if each["Type"] == "AWS::Serverless::Function"}
METHODS = sorted(catalogue().methods)


def function_name(properties: dict[str, Any]) -> str:
    """What a function is called in every stack."""
    pattern: str = properties["FunctionName"]["Fn::Sub"]
    return pattern.removeprefix("${AWS::StackName}-")


BY_NAME = {function_name(properties): (logical, properties) for logical, properties in LAMBDAS.items()}


def statements(properties: dict[str, Any]) -> list[dict[str, Any]]:
    """A function's statements, those that a condition adds included."""
    found = [statement for policy in properties.get("Policies", []) for statement in policy["Statement"]]
    return [each["Fn::If"][1] if "Fn::If" in each else each for each in found]


def actions(statement: dict[str, Any]) -> list[str]:
    """What a statement lets a function do."""
    action = statement["Action"]
    return action if isinstance(action, list) else [action]
