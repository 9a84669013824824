"""The template as CloudFormation receives it from SAM's transform."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from infra.deploy.function_resources import template
from infra.local.template import FILE
from tests.helpers.stack_limits import (
    MOST_SHARE,
    PROCESSED_LIMITS,
    documented_shares,
    functions_with_more_methods,
    processed_needs,
    shares,
)
from tests.suites.deployment.tools import command_environment, tool


def processed(text: str) -> dict[str, Any]:
    """Return the template that SAM's transform makes of a text."""
    ran = subprocess.run(
        [str(tool("sam") / "python"), str(Path(__file__).with_name("translate.py"))],
        input=text,
        env=command_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    template: dict[str, Any] = json.loads(ran.stdout)
    return template


@pytest.fixture(scope="session")
def today() -> dict[str, Any]:
    """Return the processed template."""
    return processed(FILE.read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def resources(today: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the resources of the processed template."""
    found: dict[str, dict[str, Any]] = today["Resources"]
    return found


def of_type(resources: dict[str, dict[str, Any]], kind: str) -> dict[str, dict[str, Any]]:
    return {name: each for name, each in resources.items() if each["Type"] == kind}


def test_each_limit_has_room_for_more_methods(today: dict[str, Any]) -> None:
    """The processed template refers to parameters, so their values count for nothing here."""
    more = processed(template(functions_with_more_methods()))
    needs = [processed_needs(each) for each in (today, more)]
    for each in needs:
        assert {name: need for name, need in each.items() if need >= MOST_SHARE * PROCESSED_LIMITS[name]} == {}
    now, then = (shares(each, PROCESSED_LIMITS) for each in needs)
    documented = documented_shares()
    assert {name: documented[name] for name in PROCESSED_LIMITS} == {
        name: (limit, now[name], then[name]) for name, limit in PROCESSED_LIMITS.items()
    }


def test_routes_need_no_permission_of_their_own(resources: dict[str, dict[str, Any]]) -> None:
    permissions = of_type(resources, "AWS::Lambda::Permission")
    invoking = {name for name, each in permissions.items() if "apigateway" in each["Properties"]["Principal"]}
    assert invoking == {"ApiAccessAuthorizerPermission"}


def test_sam_adds_no_role_and_no_managed_policy(resources: dict[str, dict[str, Any]]) -> None:
    """SAM's own roles may write to every log group and read every stream of the account."""
    functions = of_type(resources, "AWS::Lambda::Function")
    roles = of_type(resources, "AWS::IAM::Role")
    assert set(roles) == {f"{name}Role" for name in functions} | {
        "ApiRole",
        "DeviceRulesRole",
        "DeviceProvisioningRole",
    }
    assert ":aws:policy/" not in json.dumps(roles)


def test_everything_of_devices_has_their_condition(resources: dict[str, dict[str, Any]]) -> None:
    of_devices = {
        name: each
        for name, each in resources.items()
        if each["Type"].startswith("AWS::IoT::")
        or name.startswith(("Boards", "WorkersDevice", "WorkersWakeWebhooks", "WorkersDeliverWebhooks"))
    }
    assert {each["Type"] for each in of_devices.values()} >= {
        "AWS::IoT::TopicRule",
        "AWS::Lambda::EventInvokeConfig",
        "AWS::Lambda::Function",
    }
    assert {name for name, each in of_devices.items() if each.get("Condition") != "WithDevices"} == set()


def test_deletion_leaves_data_and_the_devices_endpoint(resources: dict[str, dict[str, Any]]) -> None:
    left = {name for name, each in resources.items() if "Retain" in each.get("DeletionPolicy", "")}
    data = {
        name
        for name, each in of_type(resources, "AWS::DynamoDB::Table").items()
        if "PointInTimeRecoverySpecification" in each["Properties"]
    }
    # A function's versions are deleted with it.
    left -= set(of_type(resources, "AWS::Lambda::Version"))
    assert left == data | {"DeviceEndpoint", "DeviceAuthorizer"}


def test_asynchronous_functions_keep_their_configuration(resources: dict[str, dict[str, Any]]) -> None:
    configured = of_type(resources, "AWS::Lambda::EventInvokeConfig").values()
    assert len(configured) == 2
    for each in configured:
        properties = each["Properties"]
        assert (properties["MaximumRetryAttempts"], properties["MaximumEventAgeInSeconds"]) == (2, 21_600)
        destination = properties["DestinationConfig"]["OnFailure"]["Destination"]
        assert destination == {"Fn::GetAtt": ["DeadLetters", "Arn"]}


def test_parameters_reach_the_functions_and_the_stage(resources: dict[str, dict[str, Any]]) -> None:
    functions = of_type(resources, "AWS::Lambda::Function").values()
    assert all(each["Properties"]["TracingConfig"]["Mode"] == {"Ref": "Tracing"} for each in functions)
    reserved = [each["Properties"].get("ReservedConcurrentExecutions") for each in functions]
    declared = FILE.read_text(encoding="utf-8").count("ReservedConcurrentExecutions:")
    assert 0 < declared == sum(value is not None for value in reserved)
    [stage] = of_type(resources, "AWS::ApiGatewayV2::Stage").values()
    assert stage["Properties"]["DefaultRouteSettings"]["ThrottlingRateLimit"] == {"Ref": "RouteRate"}


def test_layers_have_the_stacks_name(resources: dict[str, dict[str, Any]]) -> None:
    layers = of_type(resources, "AWS::Lambda::LayerVersion").values()
    assert layers
    assert all(each["Properties"]["LayerName"]["Fn::Sub"].startswith("${AWS::StackName}-") for each in layers)
