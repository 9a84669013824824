"""AWS's limits on one stack, and what a template needs of each with the longest names and values that it allows."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any, Final

from api.deployment import deployment_of
from api.handler import Handler
from infra.deploy.function_resources import PACKAGES, SERVERS, DeclaredFunction, declared_functions, environment
from infra.local.template import FILE, document, parse
from shared.rpc.method import Method
from tests.helpers.template import LONGEST_STACK_NAME

MOST_SHARE: Final = 0.9
"""The share of each limit that a stack may need."""
MORE_METHODS: Final = 40
LIMITS: Final = {
    "environment of a function (bytes)": 4_096,
    "inline policies of a role (characters)": 10_240,
    "managed policy (characters)": 6_144,
    "managed policies of a role": 10,
    "layers of a function": 5,
    "parameters": 200,
    "outputs": 200,
    "routes of the API": 300,
    "integrations of the API": 300,
    "authorizers of the API": 10,
    "template before SAM's transform (bytes)": 1_000_000,
}
PROCESSED_LIMITS: Final = {"processed template (bytes)": 1_000_000, "resources": 500}
"""Limits of the template that SAM's transform makes (`make sam`)."""

_PSEUDO: Final = {
    "AWS::AccountId": "0" * 12,
    "AWS::NoValue": "",
    "AWS::Partition": "aws-us-gov",
    "AWS::Region": "ap-northeast-3",
    "AWS::StackName": "s" * LONGEST_STACK_NAME,
    "AWS::URLSuffix": "amazonaws.com.cn",
}
_DEFAULT_LENGTH: Final = 4_096
"""CloudFormation's limit of a parameter's value."""
_NUMBER: Final = "9" * 19
_NAME_CHARACTERS: Final = 35
"""The longest function name without the stack's."""
_KIND: Final = "provisioningtemplate/"
"""The longest kind in the ARN of a resource."""
_ATTRIBUTE: Final = "/stream/2026-01-01T00:00:00.000"
"""The longest end of one."""
_SERVICES: Final = {
    "AWS::DynamoDB::Table": "dynamodb",
    "AWS::IAM::ManagedPolicy": "iam",
    "AWS::IoT::DomainConfiguration": "iot",
    "AWS::IoT::ProvisioningTemplate": "iot",
    "AWS::IAM::Role": "iam",
    "AWS::IoT::Policy": "iot",
    "AWS::IoT::ThingType": "iot",
    "AWS::SecretsManager::Secret": "secretsmanager",
    "AWS::SQS::Queue": "sqs",
}


@dataclass(frozen=True, slots=True)
class Stack:
    """A template whose references have their longest values."""

    text: str

    def needs(self) -> dict[str, int]:
        """Return what the stack needs of each limit; for functions and roles, the one that needs most."""
        template = document(self.text)
        resolve = _Resolver(template)
        common = template["Globals"]["Function"]
        functions = _of_type(template, "AWS::Serverless::Function")
        roles = _of_type(template, "AWS::IAM::Role")
        policies = _of_type(template, "AWS::IAM::ManagedPolicy")
        variables = [
            common["Environment"]["Variables"] | each.get("Environment", {}).get("Variables", {}) for each in functions
        ]
        api = template["Resources"]["Api"]["Properties"]
        routes = len(parse(self.text).routes)
        return {
            "environment of a function (bytes)": max(_size(resolve(each)) for each in variables),
            "inline policies of a role (characters)": max(
                sum(_size(resolve(policy["PolicyDocument"])) for policy in each.get("Policies", [])) for each in roles
            ),
            "managed policy (characters)": max(_size(resolve(each["PolicyDocument"])) for each in policies),
            "managed policies of a role": max(len(each.get("ManagedPolicyArns", [])) for each in roles),
            "layers of a function": max(len(common["Layers"]) + len(each.get("Layers", [])) for each in functions),
            "parameters": len(template["Parameters"]),
            "outputs": len(template["Outputs"]),
            "routes of the API": routes,
            "integrations of the API": routes,
            "authorizers of the API": len(api["Auth"]["Authorizers"]),
            "template before SAM's transform (bytes)": len(self.text.encode()),
        }


def shares(needs: dict[str, int], limits: dict[str, int]) -> dict[str, int]:
    """Return the needed percentage of each limit, rounded up to five."""
    return {name: math.ceil(20 * need / limits[name]) * 5 for name, need in needs.items()}


def documented_shares() -> dict[str, tuple[int, int, int]]:
    """Return each limit that docs/deploying.md names, its percentage today, and with more methods."""
    section = (FILE.parent / "docs" / "deploying.md").read_text().partition("## Limits of a stack")[2]
    rows = re.findall(r"^\| (.+?) \| ([\d,]+) \| (\d+) % \| (\d+) % \|$", section.partition("\n## ")[0], re.MULTILINE)
    return {name: (int(limit.replace(",", "")), int(today), int(more)) for name, limit, today, more in rows}


def processed_needs(template: dict[str, Any]) -> dict[str, int]:
    """Return what the template that SAM's transform has made needs of each limit."""
    return {"processed template (bytes)": _size(template), "resources": len(template["Resources"])}


def functions_with_more_methods() -> list[DeclaredFunction]:
    """Return the functions of Kho, and imitations of methods: of each server in turn, those with most variables."""
    functions = list(declared_functions())
    methods = [each for each in functions if isinstance(each.handler, Handler)]
    methods.sort(key=lambda each: -len(json.dumps(environment(deployment_of(each.handler).uses))))
    of_servers = [cycle([each for each in methods if each.package == server]) for server in SERVERS]
    originals = (next(methods_of_server) for methods_of_server in cycle(of_servers))
    functions += [_imitation(each, number) for number, each in enumerate(islice(originals, MORE_METHODS))]
    return sorted(functions, key=lambda each: PACKAGES.index(each.package))


def _imitation(original: DeclaredFunction, number: int) -> DeclaredFunction:
    module = f"imitation_{number}_".ljust(_NAME_CHARACTERS - len(original.package) - 1, "x")
    method: Method[Any, Any] = original.handler.method
    name = f"{original.package.replace('_', '-')}/{module}"
    handler = Handler(
        Method(method.run, name, method.role, (), anonymous=method.anonymous, tool=None), original.handler.example
    )
    vars(handler)["deployment"] = deployment_of(original.handler)
    return DeclaredFunction(original.package, module, handler, original.summary)


def _of_type(template: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [each["Properties"] for each in template["Resources"].values() if each["Type"] == kind]


def _size(value: Any) -> int:
    return len(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode())


class _Resolver:
    """Replaces references by the longest texts that they can stand for."""

    def __init__(self, template: dict[str, Any]) -> None:
        self._parameters: dict[str, dict[str, Any]] = template["Parameters"]
        self._resources: dict[str, dict[str, Any]] = template["Resources"]

    def __call__(self, value: Any) -> Any:
        match value:
            case {"Ref": str(name)}:
                return self._reference(name)
            case {"Fn::GetAtt": [str(name), *_]}:
                return self._arn(name)
            case {"Fn::Sub": str(pattern)}:
                return re.sub(r"\$\{([\w:.]+)\}", lambda part: self._substitute(part[1]), pattern)
            case {"Fn::If": [_, *branches]}:
                return max((self(each) for each in branches), key=_size)
            case dict():
                return {name: self(each) for name, each in value.items()}
            case list():
                return [self(each) for each in value]
        return value

    def _substitute(self, name: str) -> str:
        resource, _, attribute = name.partition(".")
        return self._arn(resource) if attribute else self._reference(name)

    def _reference(self, name: str) -> str:
        if name in _PSEUDO:
            return _PSEUDO[name]
        return self._longest(self._parameters[name]) if name in self._parameters else self._physical_name(name)

    def _longest(self, parameter: dict[str, Any]) -> str:
        if "AllowedValues" in parameter:
            return max(map(str, parameter["AllowedValues"]), key=len)
        if parameter["Type"] == "Number":
            return str(parameter.get("MaxValue", _NUMBER))
        length: int = parameter.get("MaxLength", _DEFAULT_LENGTH)
        return "x" * length

    def _physical_name(self, logical: str) -> str:
        """Return a resource's name as CloudFormation makes it, or for secrets and queues its ARN or address."""
        resource = self._resources[logical]
        if resource["Type"] in ("AWS::SecretsManager::Secret", "AWS::SQS::Queue"):
            return self._arn(logical)
        return f"{_PSEUDO['AWS::StackName']}-{logical}-{'X' * 12}"

    def _arn(self, logical: str) -> str:
        resource = self._resources[logical]
        if resource["Type"] == "AWS::Serverless::Function":
            service, name = "lambda", f"function:{self(resource['Properties']['FunctionName'])}"
        else:
            own = f"{_PSEUDO['AWS::StackName']}-{logical}-{'X' * 12}"
            service, name = _SERVICES[resource["Type"]], f"{_KIND}{own}{_ATTRIBUTE}"
        place = f"{_PSEUDO['AWS::Region']}:{_PSEUDO['AWS::AccountId']}"
        return f"arn:{_PSEUDO['AWS::Partition']}:{service}:{place}:{name}"
