"""`ministack`, an emulator of AWS, on loopback; and what of our template it takes."""

from __future__ import annotations

import socket
import subprocess
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import boto3
import urllib3
import yaml

from infra.local.template import TemplateLoader, load
from tests.suites.deployment.tools import command_environment, tool

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ACCOUNT: Final = "000000000000"
REGION: Final = "us-east-1"
STACK: Final = "kho"
NOT_EMULATED: Final = ("AWS::IoT::Authorizer",)
"""Types that it refuses a whole stack for, as it does for alarms of metric math; what refers to one goes with it."""
_START_SECONDS: Final = 60


@contextmanager
def running_emulator(folder: Path) -> Iterator[str]:
    """Run the emulator. Yield its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = command_environment(
        HOME=str(folder), GATEWAY_PORT=str(port), BIND_HOST="127.0.0.1", IOT_MTLS_ENABLED="0", PERSIST_STATE="0"
    )
    url = f"http://127.0.0.1:{port}"
    with (folder / "emulator.log").open("w") as log:
        process = subprocess.Popen(
            [str(tool("ministack") / "ministack")], cwd=folder, env=settings, stdout=log, stderr=subprocess.STDOUT
        )
        try:
            _await(url, process)
            yield url
        finally:
            process.terminate()
            process.wait(30)


def without_what_it_lacks(template: Path) -> tuple[Path, list[str]]:
    """Return the built template without what the emulator lacks, and the names of that. Change nested ones in place."""
    document = _load(template)
    _adapt(document)
    missing = _remove_missing(document)
    for each in document["Resources"].values():
        if each["Type"] == "AWS::CloudFormation::Stack":
            nested = template.parent / each["Properties"]["TemplateURL"]
            stack = _load(nested)
            missing += _remove_missing(stack)
            _write(nested, stack)
    supported = template.with_name("emulated.yaml")
    _write(supported, document)
    return supported, sorted(missing)


def _adapt(document: dict[str, Any]) -> None:
    """Accept a Qdrant without a certificate. Deliver records one by one: the workers then log each one's outcome."""
    document["Parameters"]["QdrantUrl"].pop("AllowedPattern", None)
    for resource in document["Resources"].values():
        for event in resource.get("Properties", {}).get("Events", {}).values():
            if event["Type"] == "DynamoDB":
                event["Properties"]["BatchSize"] = 1


def _load(template: Path) -> dict[str, Any]:
    document: dict[str, Any] = yaml.load(template.read_text(encoding="utf-8"), TemplateLoader)
    return document


def _write(template: Path, document: dict[str, Any]) -> None:
    template.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")


def _remove_missing(document: dict[str, Any]) -> list[str]:
    """Remove what the emulator lacks, and what refers to it. Return the names and types."""
    resources = document["Resources"]
    missing = {name for name, each in resources.items() if each["Type"] in NOT_EMULATED or _is_metric_math(each)}
    missing |= {name for name, each in resources.items() if _refers(each, missing)}
    document["Resources"] = {name: each for name, each in resources.items() if name not in missing}
    if "Outputs" in document:
        outputs = document["Outputs"].items()
        document["Outputs"] = {name: each for name, each in outputs if not _refers(each, missing)}
    return [f"{name} ({resources[name]['Type']})" for name in missing]


def _is_metric_math(resource: dict[str, Any]) -> bool:
    return resource["Type"] == "AWS::CloudWatch::Alarm" and "Metrics" in resource["Properties"]


def add_routes(url: str) -> str:
    """Give the API the template's routes and authorizer, which the emulator leaves out of it; the API's id."""
    template, gateway = load(), client("apigatewayv2", url)
    (api,) = (each["ApiId"] for each in gateway.get_apis()["Items"])
    arn = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{STACK}-"
    authorizer = gateway.create_authorizer(
        ApiId=api,
        Name="Access",
        AuthorizerType="REQUEST",
        AuthorizerUri=f"arn:aws:apigateway:{REGION}:lambda:path/2015-03-31/functions/{arn}{template.authorizer}/invocations",
        AuthorizerPayloadFormatVersion="2.0",
        EnableSimpleResponses=True,
        IdentitySource=["$request.header.Authorization"],
    )["AuthorizerId"]
    guarded = {"AuthorizationType": "CUSTOM", "AuthorizerId": authorizer}
    for route in template.routes:
        integration = gateway.create_integration(
            ApiId=api,
            IntegrationType="AWS_PROXY",
            IntegrationUri=f"{arn}{route.function}",
            PayloadFormatVersion="2.0",
        )["IntegrationId"]
        target = {"Target": f"integrations/{integration}"}
        gateway.create_route(ApiId=api, RouteKey=route.key, **target, **(guarded if route.authorized else {}))
    return str(api)


def client(service: Any, url: str) -> Any:
    """Create a client of the emulator."""
    create_client: Any = boto3.client
    return create_client(
        service, endpoint_url=url, region_name=REGION, aws_access_key_id="test", aws_secret_access_key="test"
    )


def _refers(value: Any, names: set[str]) -> bool:
    match value:
        case {"Ref": str(name)}:
            return name in names
        case {"Fn::GetAtt": [name, *_]}:
            return name in names
        case {"Fn::Sub": str(pattern)}:
            return any(f"${{{name}" in pattern for name in names)
        case dict():
            return any(_refers(each, names) for each in value.values())
        case list():
            return any(_refers(each, names) for each in value)
    return False


def _await(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            urllib3.request("GET", f"{url}/_ministack/health", retries=False, timeout=2)
        except urllib3.exceptions.HTTPError:
            time.sleep(0.2)
        else:
            return
    raise AssertionError("the emulator did not start")
