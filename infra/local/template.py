"""Reading `template.yaml` as far as one machine needs it: functions, their triggers, tables, settings."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

try:
    from yaml import CSafeLoader as SafeLoader  # reads the template in a seventh of the time
except ImportError:  # PyYAML was built without libyaml
    from yaml import SafeLoader  # type: ignore[assignment]

if TYPE_CHECKING:
    from collections.abc import Iterator

FILE: Final = Path(__file__).resolve().parents[2] / "template.yaml"
STACK: Final = "kho"


@dataclass(frozen=True, slots=True)
class Route:
    """One route of the gateway, and the function behind it."""

    method: str
    path: str
    function: str
    authorized: bool

    @property
    def key(self) -> str:
        """The gateway's route key."""
        return f"{self.method} {self.path}"


@dataclass(frozen=True, slots=True)
class StreamTrigger:
    """A table's stream, and the function that receives the records that pass the filters."""

    table: str
    function: str
    batch_size: int
    filters: list[dict[str, Any]]
    record_age: float = math.inf
    """The age in seconds after which records are dropped."""
    bisects: bool = False
    """True if a failed batch is split in halves."""
    parallelization: int = 1
    """The number of partition keys whose records are delivered at the same time."""


@dataclass(frozen=True, slots=True)
class RuleTrigger:
    """An IoT rule, and the function that receives the selected messages."""

    sql: str
    function: str


@dataclass(frozen=True, slots=True)
class ScheduleTrigger:
    """A schedule, and the function that it invokes."""

    seconds: float
    function: str


@dataclass(frozen=True, slots=True)
class FunctionDefinition:
    """One Lambda function."""

    name: str
    handler: str
    timeout: float
    variables: frozenset[str] | None = None
    """The names of its environment variables; None for a function of one machine alone, which reads all."""


@dataclass(frozen=True, slots=True)
class TableDefinition:
    """One table."""

    name: str
    creation: dict[str, Any]
    expiry_attribute: str | None

    @property
    def logical(self) -> str:
        """The logical id."""
        return self.name.partition("-")[2]


@dataclass(slots=True)
class Template:
    """The resources of the template that one machine serves."""

    authorizer: str = ""
    functions: dict[str, FunctionDefinition] = field(default_factory=dict)
    routes: list[Route] = field(default_factory=list)
    streams: list[StreamTrigger] = field(default_factory=list)
    rules: list[RuleTrigger] = field(default_factory=list)
    schedules: list[ScheduleTrigger] = field(default_factory=list)
    tables: list[TableDefinition] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    """The variables of all functions together, except those that name resources which one machine does not have."""


@cache
def load() -> Template:
    """Read the template."""
    return parse(FILE.read_text(encoding="utf-8"))


def parse(text: str) -> Template:
    """Read a template's text."""
    return _TemplateReader(document(text)).read()


def logical_id(name: str) -> str:
    """Return the logical id of the resource with a name, such as a function."""
    return "".join(part.title() for part in name.replace("_", "-").split("-"))


def document(text: str) -> dict[str, Any]:
    """Read a template's text as data, with intrinsic functions in their long forms."""
    data: dict[str, Any] = yaml.load(text, TemplateLoader)  # noqa: S506 - a SafeLoader with the template's tags
    return data


class TemplateLoader(SafeLoader):
    """A YAML loader that turns the short forms of intrinsic functions into their long ones."""


def _intrinsic(loader: SafeLoader, suffix: str, node: yaml.Node) -> dict[str, Any]:
    name = suffix if suffix in ("Ref", "Condition") else f"Fn::{suffix}"
    if isinstance(node, yaml.ScalarNode):
        value: Any = loader.construct_scalar(node)
        return {name: value.split(".", 1) if suffix == "GetAtt" else value}
    if isinstance(node, yaml.SequenceNode):
        return {name: loader.construct_sequence(node, deep=True)}
    assert isinstance(node, yaml.MappingNode)
    return {name: loader.construct_mapping(node, deep=True)}


TemplateLoader.add_multi_constructor("!", _intrinsic)


class _TemplateReader:
    def __init__(self, document: dict[str, Any]) -> None:
        self._parameters = {name: each.get("Default", "") for name, each in document["Parameters"].items()}
        self._resources: dict[str, dict[str, Any]] = document["Resources"]
        self._defaults: dict[str, Any] = document["Globals"]["Function"]

    def read(self) -> Template:
        template = Template()
        for logical, resource in self._resources.items():
            properties = resource.get("Properties", {})
            match resource["Type"]:
                case "AWS::DynamoDB::Table":
                    template.tables.append(self._table(logical, properties))
                case "AWS::Serverless::Function":
                    self._function(template, properties)
                case "AWS::IoT::TopicRule":
                    payload = properties["TopicRulePayload"]
                    for action in payload["Actions"]:
                        function = self._function_behind(action["Lambda"]["FunctionArn"])
                        template.rules.append(RuleTrigger(str(self._value(payload["Sql"])), function))
                case "AWS::Serverless::HttpApi":
                    auth = properties["Auth"]
                    arn = auth["Authorizers"][auth["DefaultAuthorizer"]]["FunctionArn"]
                    template.authorizer = self._function_behind(arn)
                    template.routes = list(self._routes(properties["DefinitionBody"]["paths"]))
        return template

    def _routes(self, paths: dict[str, Any]) -> Iterator[Route]:
        for path, item in paths.items():
            for verb, operation in (item["Fn::If"][1] if "Fn::If" in item else item).items():
                uri = operation["x-amazon-apigateway-integration"]["uri"]["Fn::Sub"]
                logical, _, _ = uri.partition("functions/${")[2].partition(".")
                function = self._function_name(self._resources[logical]["Properties"])
                yield Route(verb.upper(), path, function, authorized="security" not in operation)

    def _function(self, template: Template, properties: dict[str, Any]) -> None:
        name = self._function_name(properties)
        timeout = float(properties.get("Timeout", self._defaults["Timeout"]))
        variables = self._defaults["Environment"]["Variables"] | properties.get("Environment", {}).get("Variables", {})
        template.environment |= {name: str(self._value(each)) for name, each in variables.items() if self._has(each)}
        template.functions[name] = FunctionDefinition(name, properties["Handler"], timeout, frozenset(variables))
        for event in properties.get("Events", {}).values():
            details = event["Properties"]
            match event["Type"]:
                case "DynamoDB":
                    filters = details.get("FilterCriteria", {}).get("Filters", [])
                    template.streams.append(
                        StreamTrigger(
                            table=self._table_name(details["Stream"]["Fn::GetAtt"][0]),
                            function=name,
                            batch_size=details["BatchSize"],
                            filters=[json.loads(each["Pattern"]) for each in filters],
                            record_age=details["MaximumRecordAgeInSeconds"],
                            bisects=details.get("BisectBatchOnFunctionError", False),
                            parallelization=details.get("ParallelizationFactor", 1),
                        )
                    )
                case "Schedule":
                    template.schedules.append(ScheduleTrigger(_interval(details["Schedule"]), name))
                case unknown:
                    raise ValueError(f"{name}: one machine does not know events of type {unknown}")

    def _function_behind(self, arn: dict[str, list[str]]) -> str:
        return self._function_name(self._resources[arn["Fn::GetAtt"][0]]["Properties"])

    def _function_name(self, properties: dict[str, Any]) -> str:
        """Return the name without the stack's, as endpoints use it."""
        return str(self._value(properties["FunctionName"])).removeprefix(f"{STACK}-")

    def _table(self, logical: str, properties: dict[str, Any]) -> TableDefinition:
        creation = {name: properties[name] for name in ("AttributeDefinitions", "KeySchema", "BillingMode")}
        if "StreamSpecification" in properties:
            creation["StreamSpecification"] = properties["StreamSpecification"] | {"StreamEnabled": True}
        if "GlobalSecondaryIndexes" in properties:
            creation["GlobalSecondaryIndexes"] = properties["GlobalSecondaryIndexes"]
        expiry = properties.get("TimeToLiveSpecification", {}).get("AttributeName")
        return TableDefinition(self._table_name(logical), creation, expiry)

    def _table_name(self, logical: str) -> str:
        return f"{STACK}-{logical}"

    def _has(self, value: Any) -> bool:
        """Return False for the name of a resource that one machine does not have."""
        resource: dict[str, Any] = self._resources.get(value.get("Ref", ""), {}) if isinstance(value, dict) else {}
        return resource.get("Type") in (None, "AWS::DynamoDB::Table")

    def _value(self, value: Any) -> Any:
        match value:
            case {"Ref": "AWS::StackName"}:
                return STACK
            case {"Ref": name} if name in self._parameters:
                return self._parameters[name]
            case {"Ref": name} if self._resources[name]["Type"] == "AWS::DynamoDB::Table":
                return self._table_name(name)
            case {"Fn::If": [_, _, otherwise]}:  # one machine has no resource that a parameter switches on
                return self._value(otherwise)
            case {"Fn::Sub": str(pattern)}:
                return re.sub(r"\$\{([^}]+)\}", lambda found: str(self._value({"Ref": found[1]})), pattern)
            case dict():
                raise ValueError(f"one machine does not know what {value} stands for")
        return value


def _interval(schedule: str) -> float:
    """Return the seconds of a schedule such as `rate(1 minute)`."""
    match = re.fullmatch(r"rate\((\d+) minutes?\)", schedule)
    if match is None:
        raise ValueError(f"one machine does not know the schedule {schedule}")
    return 60.0 * int(match[1])
