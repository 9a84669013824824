"""The template, and helpers to read a function's properties."""

from __future__ import annotations

from typing import Any

from infra.deploy.observability import LOGS_FILE
from infra.local.template import FILE, document
from shared.rpc.catalogue import catalogue

FUNCTIONS = FILE.parent / "functions"
TEMPLATE = document(FILE.read_text())
RESOURCES: dict[str, dict[str, Any]] = TEMPLATE["Resources"]
PARAMETERS = TEMPLATE["Parameters"]
LOGS = [each["Properties"] for each in document(LOGS_FILE.read_text())["Resources"].values()]
LAMBDAS = {name: each["Properties"] for name, each in RESOURCES.items() if each["Type"] == "AWS::Serverless::Function"}
LONGEST_STACK_NAME = 28
METHODS = sorted(catalogue().methods)
OF_STREAMS = {f"dynamodb:{name}" for name in ("DescribeStream", "GetRecords", "GetShardIterator", "ListStreams")}
"""The actions of Lambda's event source mapping, not of the function's code."""


def function_name(properties: dict[str, Any]) -> str:
    """Return the function's name in every stack."""
    pattern: str = properties["FunctionName"]["Fn::Sub"]
    return pattern.removeprefix("${AWS::StackName}-")


BY_NAME = {function_name(properties): (logical, properties) for logical, properties in LAMBDAS.items()}


def role(properties: dict[str, Any]) -> dict[str, Any]:
    """Return the properties of a function's role."""
    found: dict[str, Any] = RESOURCES[_role_name(properties)]["Properties"]
    return found


def _role_name(properties: dict[str, Any]) -> str:
    logical: str
    logical, attribute = properties["Role"]["Fn::GetAtt"]
    assert attribute == "Arn"
    return logical


def managed_policies(properties: dict[str, Any]) -> dict[str, str | None]:
    """Return the managed policies of a function's role, each with the condition of its attachment."""
    attached: dict[str, str | None] = {}
    for policy in role(properties)["ManagedPolicyArns"]:
        condition, reference = policy["Fn::If"][:2] if "Fn::If" in policy else (None, policy)
        # A policy under the function's own condition needs no other.
        shared = {RESOURCES[reference["Ref"]].get("Condition")} & {RESOURCES[_role_name(properties)].get("Condition")}
        attached[reference["Ref"]] = condition or next(iter(shared), None)
    return attached


def statements(properties: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a function's statements: those of its managed policies, under any condition, and its own."""
    documents = [RESOURCES[name]["Properties"]["PolicyDocument"] for name in managed_policies(properties)]
    documents += [policy["PolicyDocument"] for policy in role(properties)["Policies"]]
    return [statement for document in documents for statement in document["Statement"]]


def actions(statement: dict[str, Any]) -> list[str]:
    """Return the actions that a statement allows."""
    action = statement["Action"]
    return action if isinstance(action, list) else [action]


METERING = ("dynamodb:UpdateItem", "LimitsTable")
"""The action of every method on the buckets of rate limits, which only callers with credentials required have, and of
every worker of a stream on the attempts at a record."""


def table_actions(function: str) -> set[tuple[str, str]]:
    """Return the DynamoDB actions that a function is allowed, each with its table, except METERING."""
    return all_table_actions(function) - {METERING}


def all_table_actions(function: str) -> set[tuple[str, str]]:
    """Return the DynamoDB actions that a function is allowed, each with its table."""
    return {
        (action, statement["Resource"]["Fn::GetAtt"][0])
        for statement in statements(BY_NAME[function][1])
        for action in actions(statement)
        if action.startswith("dynamodb:") and action not in OF_STREAMS
    }


def invocable_functions(function: str) -> set[str]:
    """Return the functions that a function may invoke."""
    invocable = set()
    for statement in statements(BY_NAME[function][1]):
        if "lambda:InvokeFunction" in actions(statement):
            for resource in statement["Resource"]:
                logical = resource["Fn::GetAtt"][0] if "Fn::GetAtt" in resource else _aliased(resource["Fn::Sub"])
                invocable.add(function_name(LAMBDAS[logical]))
    return invocable


def _aliased(arn: str) -> str:
    logical, _, alias = arn.removeprefix("${").partition(".Arn}:")
    assert LAMBDAS[logical]["AutoPublishAlias"] == alias
    return logical
