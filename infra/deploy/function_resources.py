"""`template.yaml`: the hand-written files of `infra/template/`, and the functions from their own declarations."""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import re
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

from api.deployment import (
    ANONYMOUS_LIMITS,
    CALL_LIMITS,
    CREDENTIALS,
    DEAD_LETTERS,
    DEFAULT_MEMORY,
    DEFAULT_TIMEOUT,
    DEVICES,
    FUNCTION_NAMES,
    Dependency,
    TableAccess,
    deployment_of,
    table,
)
from api.handler import Handler
from infra.local.template import TemplateLoader, logical_id

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from api.deployment import Deployment, IotRule, TableStream
    from shared.rpc.method import Method

SERVERS: Final = ("agent_data", "memory_server", "tool_server", "recall_kit", "research_agent", "device_server")
_INVOKED_TOGETHER: Final = (
    ("agent_data", "research_agent"),
    ("memory_server", "tool_server"),
    ("recall_kit", "device_server"),
)
"""Pairs of servers with about as many methods each, for policies of about one length."""
PACKAGES: Final = ("endpoints", "discovery", "oauth", *SERVERS, "workers", "boards")

_BASE: Final = Path(__file__).resolve().parents[1] / "template"
_HEAD: Final = """\
# Made by `make generate`; do not edit. Functions are declared in functions/ (api/deployment.py), everything else in
# infra/template/.
"""
_DESCRIPTION_CHARACTERS: Final = 256
_LAYERS: Final = (
    "AccessLayer",
    "McpLayer",
    "KnowledgeLayer",
    "PdfLayer",
    "EmbeddingLayer",
    "DevicesLayer",
    "SecretsLayer",
    "SearchLayer",
    "ConsoleLayer",
)
_ALIAS: Final = "live"
_API_ROLE: Final = "ApiRole"
_API_INFO: Final = {"version": "1.0", "title": {"Ref": "AWS::StackName"}}
_DEFINITION: Final = "      # kho generate: DefinitionBody"
_PATH_PARAMETER: Final = re.compile(r"{(.*?)}")
_QUOTED: Final = re.compile(r"(!Ref|!GetAtt) '([\w.:]+)'")
_SECTION: Final = re.compile(r"^(?=[A-Z])", re.MULTILINE)


def _arn(logical: str) -> dict[str, Any]:
    return {"Fn::GetAtt": [logical, "Arn"]}


_TO_DEAD_LETTERS: Final = {"OnFailure": {"Type": "SQS", "Destination": _arn("DeadLetters")}}
_ASYNCHRONOUS: Final = {
    "MaximumRetryAttempts": 2,
    "MaximumEventAgeInSeconds": 21_600,
    "DestinationConfig": _TO_DEAD_LETTERS,
}
"""Invocations that IoT Core's rules make: three attempts, and six hours for those that are throttled.

With few instances, the events of a fleet that comes back wait for minutes.
"""
_LAMBDA_TRUST: Final = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}],
}


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
        for entry in pkgutil.iter_modules(importlib.import_module(package).__path__):
            module = importlib.import_module(f"{package}.{entry.name}")
            if hasattr(module, "handler"):
                yield DeclaredFunction(package, entry.name, module.handler, _summary(module))


def template(functions: Sequence[DeclaredFunction] = ()) -> str:
    """Return the text of `template.yaml`, with these functions or those of `functions/`."""
    functions = functions or list(declared_functions())
    sections = _sections()
    sections.pop("Environment")
    invocation = _invocation_policies(functions)
    policies = _managed_policies(sections["Resources"]) | dict.fromkeys(invocation)
    definition = _indented({"DefinitionBody": {"openapi": "3.0.1", "info": _API_INFO, "paths": _paths(functions)}}, 6)
    parts = [sections.pop("Resources").rstrip().replace(_DEFINITION, definition)]
    parts += [_indented(invocation), _indented({_API_ROLE: _api_role(functions)})]
    for package, group in groupby(functions, key=lambda each: each.package):
        parts.append(f"  # {package.replace('_', '-')}")
        parts += [_indented(_resources(each, functions, policies)) for each in group]
    outputs = sections.pop("Outputs")
    head = "".join(f"{name}:{body}" for name, body in sections.items())
    resources = "\n\n".join(parts)
    return f"{_HEAD}{head}Resources:{resources}\n\nOutputs:{outputs}"


def _sections() -> dict[str, str]:
    """Return the text of each section of the hand-written files."""
    sections: dict[str, str] = {}
    for file in sorted(_BASE.glob("*.yaml")):
        for section in _SECTION.split(file.read_text(encoding="utf-8"))[1:]:
            name, _, body = section.partition(":")
            sections[name] = f"{sections[name].rstrip()}\n{body}" if name in sections else body
    return sections


@cache
def variable_values() -> dict[str, Any]:
    """Return the value of each variable that functions declare."""
    return _document("Environment", _sections()["Environment"])


def _managed_policies(resources: str) -> dict[str, str | None]:
    """Return the condition of each managed policy."""
    document = _document("Resources", resources)
    return {name: each.get("Condition") for name, each in document.items() if each["Type"] == "AWS::IAM::ManagedPolicy"}


def _document(section: str, body: str) -> dict[str, Any]:
    document: dict[str, Any] = yaml.load(f"{section}:{body}", TemplateLoader)[section]  # noqa: S506 - a SafeLoader
    return document


def _resources(
    function: DeclaredFunction, functions: Sequence[DeclaredFunction], policies: dict[str, str | None]
) -> dict[str, Any]:
    deployment = deployment_of(function.handler)
    method = function.handler.method if isinstance(function.handler, Handler) else None
    uses = _uses(deployment, method)
    role = f"{function.logical_id}Role"
    properties: dict[str, Any] = {
        "FunctionName": {"Fn::Sub": f"${{AWS::StackName}}-{function.name}"},
        "Description": function.summary,
        "Handler": f"{function.package}.{function.module}.handler",
        "Role": _arn(role),
        "LoggingConfig": {"LogGroup": {"Fn::Sub": f"/kho/${{AWS::StackName}}/{function.name}"}},
    }
    layers = {layer for each in uses if isinstance(each, Dependency) for layer in each.layers}
    if layers:
        properties["Layers"] = [{"Ref": layer} for layer in sorted(layers, key=_LAYERS.index)]
    properties |= environment(uses)
    if deployment.memory != DEFAULT_MEMORY:
        properties["MemorySize"] = deployment.memory
    if deployment.timeout != DEFAULT_TIMEOUT:
        properties["Timeout"] = deployment.timeout
    properties |= _concurrency(deployment, anonymous=bool(method and method.anonymous))
    if deployment.rules:
        properties["EventInvokeConfig"] = _ASYNCHRONOUS
    events = _events(deployment)
    if events:
        properties["Events"] = events
    condition = {"Condition": deployment.condition} if deployment.condition else {}
    resources = {
        function.logical_id: {
            "Type": "AWS::Serverless::Function",
            **condition,
            "DependsOn": "Logs",
            "Properties": properties,
        },
        role: {"Type": "AWS::IAM::Role", **condition, "Properties": _role(function, uses, functions, policies)},
    }
    for rule in deployment.rules:
        resources |= _rule(rule, function.logical_id)
    return resources


def _concurrency(deployment: Deployment, *, anonymous: bool) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    reserved = deployment.concurrency or ("AnonymousConcurrency" if anonymous else None)
    if reserved:
        properties["ReservedConcurrentExecutions"] = _if(f"With{reserved}", {"Ref": reserved})
    if deployment.provisioned:
        instances = {"ProvisionedConcurrentExecutions": {"Ref": deployment.provisioned}}
        properties["AutoPublishAlias"] = _ALIAS
        # A version is published when the function changes, or a layer of it with PublishLambdaVersion.
        properties["AutoPublishAliasAllProperties"] = True
        properties["ProvisionedConcurrencyConfig"] = _if(f"With{deployment.provisioned}", instances)
    return properties


def _uses(deployment: Deployment, method: Method[Any, Any] | None) -> list[TableAccess | Dependency]:
    """Return what the function declares, and what follows from its kind."""
    uses = list(deployment.uses)
    if method:
        uses += [table("Limits", "UpdateItem"), CALL_LIMITS]
    if method and method.anonymous:
        uses += [CREDENTIALS, ANONYMOUS_LIMITS]
    if deployment.invokes:
        uses.append(FUNCTION_NAMES)
    if deployment.stream:
        uses += [DEAD_LETTERS, table("Limits", "UpdateItem")]
    return uses


def environment(uses: Sequence[TableAccess | Dependency]) -> dict[str, Any]:
    """Return the environment variables that the function has besides those of all functions."""
    names = {name for each in uses for name in ([each.variable] if isinstance(each, TableAccess) else each.variables)}
    if unknown := sorted(names - variable_values().keys()):
        raise ValueError(f"{', '.join(unknown)}: add the value to Environment in infra/template/base.yaml")
    return {"Environment": {"Variables": {name: variable_values()[name] for name in sorted(names)}}} if names else {}


def _role(
    function: DeclaredFunction,
    uses: list[TableAccess | Dependency],
    functions: Sequence[DeclaredFunction],
    policies: dict[str, str | None],
) -> dict[str, Any]:
    """Return the function's role. SAM's own roles may write to every log group and read every stream of the account."""
    deployment = deployment_of(function.handler)
    groups = "arn:${AWS::Partition}:logs:${AWS::Region}:${AWS::AccountId}:log-group:/kho/${AWS::StackName}"
    statements = [_allow(("logs:CreateLogStream", "logs:PutLogEvents"), {"Fn::Sub": f"{groups}/{function.name}:*"})]
    statements += [
        _allow([f"dynamodb:{action}" for action in sorted(each.actions)], _arn(each.table))
        for each in uses
        if isinstance(each, TableAccess)
    ]
    if deployment.invokes and deployment.invokes != ("*",):
        statements.append(_invoke_statement(deployment.invokes, functions))
    if deployment.stream:
        reads = ("dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator")
        statements.append(_allow(reads, {"Fn::GetAtt": [f"{deployment.stream.table}Table", "StreamArn"]}))
    if DEAD_LETTERS in uses or deployment.rules:
        statements.append(_allow(("sqs:SendMessage",), _arn("DeadLetters")))
    named = [name for each in uses if isinstance(each, Dependency) for name in each.policies]
    named += ["StreamListing"] if deployment.stream else []
    named += _invocation_policies(functions) if deployment.invokes == ("*",) else []
    attached = [_attached(name, policies[name], deployment) for name in dict.fromkeys(["TraceWriting", *named])]
    return {
        "AssumeRolePolicyDocument": _LAMBDA_TRUST,
        "ManagedPolicyArns": attached,
        "Policies": [
            {"PolicyName": "function", "PolicyDocument": {"Version": "2012-10-17", "Statement": statements}},
        ],
    }


def _allow(actions: Sequence[str], resource: Any) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": list(actions), "Resource": resource}


def _attached(policy: str, condition: str | None, deployment: Deployment) -> dict[str, Any]:
    """Return the policy's reference, under its condition unless the function itself has that."""
    return _if(condition, {"Ref": policy}) if condition not in (None, deployment.condition) else {"Ref": policy}


def _if(condition: str, value: dict[str, Any]) -> dict[str, Any]:
    return {"Fn::If": [condition, value, {"Ref": "AWS::NoValue"}]}


def _under(condition: str, value: dict[str, Any]) -> dict[str, Any]:
    return _if(condition, value) if condition else value


def _invoke_statement(invokes: tuple[str, ...], functions: Sequence[DeclaredFunction]) -> dict[str, Any]:
    """Allow the functions of the methods, each by its ARN."""
    invoked = [
        _arn(each.logical_id)
        for each in functions
        if isinstance(each.handler, Handler)
        and {f"{each.handler.method.name.partition('/')[0]}/*", each.handler.method.name} & set(invokes)
    ]
    return _allow(("lambda:InvokeFunction",), invoked)


def _invocation_policies(functions: Sequence[DeclaredFunction]) -> dict[str, Any]:
    """Return the managed policies that allow to invoke the methods of two servers each.

    All methods exceed one policy, and one policy for each server exceeds what a role may have.
    """
    policies: dict[str, Any] = {}
    for pair in _INVOKED_TOGETHER:
        names = [server.replace("_", "-") for server in pair]
        statement = _invoke_statement(tuple(f"{name}/*" for name in names), functions)
        properties = {
            "Description": f"Invoke the methods of {' and '.join(names)}.",
            "PolicyDocument": {"Version": "2012-10-17", "Statement": [statement]},
        }
        policies["".join(map(logical_id, pair)) + "Invocation"] = {
            "Type": "AWS::IAM::ManagedPolicy",
            "Properties": properties,
        }
    return policies


def _api_role(functions: Sequence[DeclaredFunction]) -> dict[str, Any]:
    """Return the role with which the API invokes the functions of all routes: a permission for each is a resource."""
    own = [
        _under(deployment_of(each.handler).condition, _arn(each.logical_id))
        for each in functions
        if not isinstance(each.handler, Handler) and deployment_of(each.handler).routes
    ]
    trust = {"Effect": "Allow", "Principal": {"Service": "apigateway.amazonaws.com"}, "Action": "sts:AssumeRole"}
    policy = {"Version": "2012-10-17", "Statement": [_allow(("lambda:InvokeFunction",), own)]}
    return {
        "Type": "AWS::IAM::Role",
        "Properties": {
            "AssumeRolePolicyDocument": {"Version": "2012-10-17", "Statement": [trust]},
            "ManagedPolicyArns": [{"Ref": name} for name in _invocation_policies(functions)],
            "Policies": [{"PolicyName": "routes", "PolicyDocument": policy}],
        },
    }


def _paths(functions: Sequence[DeclaredFunction]) -> dict[str, Any]:
    """Return the API's routes as OpenAPI has them, each with the function behind it."""
    paths: dict[str, Any] = {}
    conditions: dict[str, str] = {}
    for function in functions:
        deployment = deployment_of(function.handler)
        routes = [(route, False) for route in deployment.routes]
        if isinstance(function.handler, Handler):
            method = function.handler.method
            routes.append((f"POST /{method.name}", not method.anonymous))
        for route, authorized in routes:
            verb, _, path = route.partition(" ")
            paths.setdefault(path, {})[verb.lower()] = _operation(function.logical_id, path, authorized=authorized)
            conditions[path] = deployment.condition
    return {path: _under(conditions[path], each) for path, each in paths.items()}


def _operation(function: str, path: str, *, authorized: bool) -> dict[str, Any]:
    """Return a route's operation. SAM adds the authorizer where none is switched off."""
    service = "arn:${AWS::Partition}:apigateway:${AWS::Region}:lambda:path/2015-03-31"
    operation: dict[str, Any] = {
        "x-amazon-apigateway-integration": {
            "type": "aws_proxy",
            "httpMethod": "POST",
            "payloadFormatVersion": "2.0",
            "credentials": _arn(_API_ROLE),
            "uri": {"Fn::Sub": f"{service}/functions/${{{function}.Arn}}/invocations"},
        }
    }
    if not authorized:
        operation["security"] = [{"NONE": []}]
    if names := _PATH_PARAMETER.findall(path):
        operation["parameters"] = [{"name": name, "in": "path", "required": True} for name in names]
    return operation | {"responses": {}}


def _events(deployment: Deployment) -> dict[str, Any]:
    events: dict[str, Any] = {}
    if deployment.stream:
        events[deployment.stream.event] = _stream(deployment.stream)
    if deployment.schedule:
        events["Schedule"] = {"Type": "Schedule", "Properties": {"Schedule": deployment.schedule}}
    return events


def _stream(stream: TableStream) -> dict[str, Any]:
    return {
        "Type": "DynamoDB",
        "Properties": {
            "Stream": {"Fn::GetAtt": [f"{stream.table}Table", "StreamArn"]},
            "StartingPosition": "TRIM_HORIZON",
            "BatchSize": stream.batch_size,
            "MaximumRetryAttempts": -1,
            "MaximumRecordAgeInSeconds": stream.max_age,
            **({"ParallelizationFactor": stream.parallelization} if stream.parallelization > 1 else {}),
            "BisectBatchOnFunctionError": True,
            "FunctionResponseTypes": ["ReportBatchItemFailures"],
            "DestinationConfig": _TO_DEAD_LETTERS,
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
            "Condition": DEVICES,
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
            "Condition": DEVICES,
            "Properties": {
                "Action": "lambda:InvokeFunction",
                "FunctionName": _arn(function),
                "Principal": "iot.amazonaws.com",
                "SourceAccount": {"Ref": "AWS::AccountId"},
                "SourceArn": _arn(rule.logical_id),
            },
        },
    }


def _summary(module: Any) -> str:
    """Return the first sentence of the module's docstring, without a method or route at its start."""
    paragraph = " ".join((inspect.getdoc(module) or "").partition("\n\n")[0].split())
    name, separator, rest = paragraph.partition(": ")
    text = rest if separator and "/" in name else paragraph
    return (text[:1].upper() + text[1:])[:_DESCRIPTION_CHARACTERS]


def _indented(resources: dict[str, Any], spaces: int = 2) -> str:
    texts = [
        yaml.dump({name: each}, Dumper=_TemplateDumper, sort_keys=False, default_flow_style=None, width=1000)
        for name, each in resources.items()
    ]
    plain = [_QUOTED.sub(r"\1 \2", text) for text in texts]
    return "\n\n".join("\n".join(" " * spaces + line for line in text.splitlines()) for text in plain)


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
    return dumper.represent_mapping("tag:yaml.org,2002:map", value)


def _represent_list(dumper: yaml.SafeDumper, value: list[Any]) -> yaml.Node:
    one_a_line = len(value) > 1 and all(isinstance(each, dict) and "Fn::GetAtt" in each for each in value)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", value, flow_style=False if one_a_line else None)


_TemplateDumper.add_representer(dict, _represent)
_TemplateDumper.add_representer(list, _represent_list)
