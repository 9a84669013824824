"""`template.yaml`: the hand-written files of `infra/template/`, and the functions from their own declarations."""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import re
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

from api.deployment import CREDENTIALS, DEFAULT_MEMORY, DEFAULT_TIMEOUT, Dependency, TableAccess, deployment_of
from api.handler import Handler
from infra.local.template import TemplateLoader, logical_id

if TYPE_CHECKING:
    from collections.abc import Iterator

    from api.deployment import Deployment, IotRule, TableStream

SERVERS: Final = ("agent_data", "memory_server", "tool_server", "recall_kit", "research_agent", "device_server")
PACKAGES: Final = ("endpoints", *SERVERS, "workers", "device_access")

_BASE: Final = Path(__file__).resolve().parents[1] / "template"
_HEAD: Final = """\
# Made by `make generate`; do not edit. Functions are declared in functions/ (api/deployment.py), everything else in
# infra/template/.
"""
_DESCRIPTION_CHARACTERS: Final = 256
_LAYERS: Final = ("AccessLayer", "McpLayer", "KnowledgeLayer", "DevicesLayer", "SecretsLayer", "SearchLayer")
_QUOTED: Final = re.compile(r"(!Ref|!GetAtt) '([\w.:]+)'")
_SECTION: Final = re.compile(r"^(?=[A-Z])", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class DeclaredFunction:
    """One module of `functions/` that is a Lambda function."""

    package: str
    module: str
    handler: Any
    summary: str

    @property
    def name(self) -> str:
        """The name without the stack's."""
        return f"{self.package}-{self.module}"

    @property
    def logical_id(self) -> str:
        """The name of its resource in the template."""
        return logical_id(self.package) + logical_id(self.module)


def declared_functions(*packages: str) -> Iterator[DeclaredFunction]:
    """Every module of the packages, or of all, that has a handler."""
    for package in packages or PACKAGES:
        for found in pkgutil.iter_modules(importlib.import_module(package).__path__):
            module = importlib.import_module(f"{package}.{found.name}")
            if hasattr(module, "handler"):
                yield DeclaredFunction(package, found.name, module.handler, _summary(module))


def template() -> str:
    """Return the text of `template.yaml`."""
    sections: dict[str, str] = {}
    for file in sorted(_BASE.glob("*.yaml")):
        for section in _SECTION.split(file.read_text(encoding="utf-8"))[1:]:
            name, _, body = section.partition(":")
            sections[name] = f"{sections[name].rstrip()}\n{body}" if name in sections else body
    functions = list(declared_functions())
    policies = _managed_policies(sections["Resources"])
    parts = [sections.pop("Resources").rstrip()]
    for package, group in groupby(functions, key=lambda each: each.package):
        parts.append(f"  # {package.replace('_', '-')}")
        parts += [_indented(_resources(each, functions, policies)) for each in group]
    outputs = sections.pop("Outputs")
    head = "".join(f"{name}:{body}" for name, body in sections.items())
    resources = "\n\n".join(parts)
    return f"{_HEAD}{head}Resources:{resources}\n\nOutputs:{outputs}"


def _managed_policies(resources: str) -> dict[str, str | None]:
    """Return the condition of each managed policy."""
    document: dict[str, Any] = yaml.load(f"Resources:{resources}", TemplateLoader)["Resources"]  # noqa: S506 - a SafeLoader
    return {name: each.get("Condition") for name, each in document.items() if each["Type"] == "AWS::IAM::ManagedPolicy"}


def _resources(
    function: DeclaredFunction, functions: list[DeclaredFunction], policies: dict[str, str | None]
) -> dict[str, Any]:
    deployment = deployment_of(function.handler)
    uses = list(deployment.uses)
    method = function.handler.method if isinstance(function.handler, Handler) else None
    if method and method.anonymous:
        uses.append(CREDENTIALS)
    properties: dict[str, Any] = {
        "FunctionName": {"Fn::Sub": f"${{AWS::StackName}}-{function.name}"},
        "Description": function.summary,
        "Handler": f"{function.package}.{function.module}.handler",
        "LoggingConfig": {"LogGroup": {"Fn::Sub": f"/kho/${{AWS::StackName}}/{function.name}"}},
    }
    layers = {layer for each in uses if isinstance(each, Dependency) for layer in each.layers}
    if layers:
        properties["Layers"] = [{"Ref": layer} for layer in sorted(layers, key=_LAYERS.index)]
    if deployment.memory != DEFAULT_MEMORY:
        properties["MemorySize"] = deployment.memory
    if deployment.timeout != DEFAULT_TIMEOUT:
        properties["Timeout"] = deployment.timeout
    statements = [_table_statement(each) for each in uses if isinstance(each, TableAccess)]
    if deployment.invokes:
        statements.append(_invoke_statement(deployment.invokes, functions))
    managed = [name for each in uses if isinstance(each, Dependency) for name in each.policies]
    attached = [_attached(name, policies[name]) for name in managed]
    if attached or statements:
        properties["Policies"] = attached + ([{"Statement": statements}] if statements else [])
    events = _events(deployment, f"/{method.name}" if method else "", anonymous=bool(method and method.anonymous))
    if events:
        properties["Events"] = events
    resources = {
        function.logical_id: {"Type": "AWS::Serverless::Function", "DependsOn": "Logs", "Properties": properties}
    }
    for rule in deployment.rules:
        resources |= _rule(rule, function.logical_id)
    return resources


def _table_statement(access: TableAccess) -> dict[str, Any]:
    actions = [f"dynamodb:{action}" for action in sorted(access.actions)]
    return {"Effect": "Allow", "Action": actions, "Resource": _arn(access.table)}


def _attached(policy: str, condition: str | None) -> dict[str, Any]:
    reference = {"Ref": policy}
    return {"Fn::If": [condition, reference, {"Ref": "AWS::NoValue"}]} if condition else reference


def _invoke_statement(invokes: tuple[str, ...], functions: list[DeclaredFunction]) -> dict[str, Any]:
    """Allow the functions of the methods, each by its ARN."""
    invoked = [
        _arn(each.logical_id)
        for each in functions
        if isinstance(each.handler, Handler)
        and {"*", f"{each.handler.method.name.partition('/')[0]}/*", each.handler.method.name} & set(invokes)
    ]
    return {"Effect": "Allow", "Action": ["lambda:InvokeFunction"], "Resource": invoked}


def _events(deployment: Deployment, method_path: str, *, anonymous: bool) -> dict[str, Any]:
    events: dict[str, Any] = {}
    if method_path:
        events["Direct"] = _route(f"POST {method_path}", authorized=not anonymous)
    for name, route in deployment.routes:
        events[name] = _route(route, authorized=False)
    if deployment.stream:
        events[deployment.stream.event] = _stream(deployment.stream)
    return events


def _route(route: str, *, authorized: bool) -> dict[str, Any]:
    verb, _, path = route.partition(" ")
    properties = {"ApiId": {"Ref": "Api"}, "Method": verb, "Path": path}
    return {"Type": "HttpApi", "Properties": properties | ({} if authorized else {"Auth": {"Authorizer": "NONE"}})}


def _stream(stream: TableStream) -> dict[str, Any]:
    return {
        "Type": "DynamoDB",
        "Properties": {
            "Stream": {"Fn::GetAtt": [f"{stream.table}Table", "StreamArn"]},
            "StartingPosition": "TRIM_HORIZON",
            "BatchSize": stream.batch_size,
            "MaximumRetryAttempts": stream.max_retries,
            **({"MaximumRecordAgeInSeconds": stream.max_age} if stream.max_age else {}),
            **({"ParallelizationFactor": stream.parallelization} if stream.parallelization > 1 else {}),
            "BisectBatchOnFunctionError": True,
            "FunctionResponseTypes": ["ReportBatchItemFailures"],
            "DestinationConfig": {"OnFailure": {"Type": "SQS", "Destination": _arn("DeadLetters")}},
            "FilterCriteria": {
                "Filters": [{"Pattern": json.dumps(each, separators=(",", ":"))} for each in stream.filters]
            },
        },
    }


def _rule(rule: IotRule, function: str) -> dict[str, Any]:
    error_action = {"QueueUrl": {"Ref": "DeadLetters"}, "RoleArn": _arn("DeviceRulesRole"), "UseBase64": False}
    return {
        rule.logical_id: {
            "Type": "AWS::IoT::TopicRule",
            "Properties": {
                "TopicRulePayload": {
                    "Description": rule.description,
                    "AwsIotSqlVersion": "2016-03-23",
                    "Sql": rule.sql,
                    "Actions": [{"Lambda": {"FunctionArn": _arn(function)}}],
                    "ErrorAction": {"Sqs": error_action},
                }
            },
        },
        f"{rule.logical_id}Permission": {
            "Type": "AWS::Lambda::Permission",
            "Properties": {
                "Action": "lambda:InvokeFunction",
                "FunctionName": _arn(function),
                "Principal": "iot.amazonaws.com",
                "SourceAccount": {"Ref": "AWS::AccountId"},
                "SourceArn": _arn(rule.logical_id),
            },
        },
    }


def _arn(logical: str) -> dict[str, Any]:
    return {"Fn::GetAtt": [logical, "Arn"]}


def _summary(module: Any) -> str:
    """Return the first sentence of the module's docstring, without a method or route at its start."""
    paragraph = " ".join((inspect.getdoc(module) or "").partition("\n\n")[0].split())
    name, separator, rest = paragraph.partition(": ")
    text = rest if separator and "/" in name else paragraph
    return (text[:1].upper() + text[1:])[:_DESCRIPTION_CHARACTERS]


def _indented(resources: dict[str, Any]) -> str:
    texts = [
        yaml.dump({name: each}, Dumper=_TemplateDumper, sort_keys=False, default_flow_style=None, width=1000)
        for name, each in resources.items()
    ]
    plain = [_QUOTED.sub(r"\1 \2", text) for text in texts]
    return "\n\n".join("\n".join(f"  {line}" for line in text.splitlines()) for text in plain)


class DumperWithoutAliases(yaml.SafeDumper):
    """Writes an object in full wherever it occurs."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - yaml's signature
        """Return True."""
        return True


class _TemplateDumper(DumperWithoutAliases):
    """Writes intrinsic functions in their short forms."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002 - yaml's
        return super().increase_indent(flow, False)  # lists are indented below their keys


def _represent(dumper: yaml.SafeDumper, value: dict[str, Any]) -> yaml.Node:
    match value:
        case {"Ref": str(name), **rest} if not rest:
            return dumper.represent_scalar("!Ref", name)
        case {"Fn::GetAtt": [resource, attribute], **rest} if not rest:
            return dumper.represent_scalar("!GetAtt", f"{resource}.{attribute}")
        case {"Fn::Sub": str(pattern), **rest} if not rest:
            return dumper.represent_scalar("!Sub", pattern)
        case {"Fn::If": list(branches), **rest} if not rest:
            return dumper.represent_sequence("!If", branches, flow_style=True)
    return dumper.represent_mapping("tag:yaml.org,2002:map", value, flow_style="ApiId" in value or None)


def _represent_list(dumper: yaml.SafeDumper, value: list[Any]) -> yaml.Node:
    one_a_line = len(value) > 1 and all(isinstance(each, dict) and "Fn::GetAtt" in each for each in value)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", value, flow_style=False if one_a_line else None)


_TemplateDumper.add_representer(dict, _represent)
_TemplateDumper.add_representer(list, _represent_list)
