"""The life of a stack: its resources, those that its deletion leaves, and the order in which they are removed."""

from __future__ import annotations

import re
from typing import Any

import pytest

from infra.local.template import FILE
from tests.helpers.template import LAMBDAS, PARAMETERS, RESOURCES, TEMPLATE

DEPLOYING = (FILE.parent / "docs" / "deploying.md").read_text(encoding="utf-8")
DEVICE_FUNCTIONS = ("Boards", "WorkersDevice", "WorkersWakeWebhooks", "WorkersDeliverWebhooks")
# AWS refuses to delete them while a certificate or a thing uses them.
IN_USE_BY_DEVICES = {"AWS::IoT::Policy", "AWS::IoT::ThingType"}
# AWS deletes them no earlier than seven days after they were disabled, or not before the former.
UNDELETABLE = {"AWS::IoT::DomainConfiguration", "AWS::IoT::Authorizer"}


def of_type(prefix: str) -> dict[str, dict[str, Any]]:
    return {name: each for name, each in RESOURCES.items() if each["Type"].startswith(prefix)}


def references(value: Any) -> set[str]:
    """Return the resources that a part of the template refers to, also without devices."""
    match value:
        case {"Fn::If": ["WithDevices", _, otherwise]}:
            return references(otherwise)
        case {"Ref": str(name)}:
            return {name} & RESOURCES.keys()
        case {"Fn::GetAtt": [str(name), *_]}:
            return {name}
        case {"Fn::Sub": str(pattern)}:
            return set(re.findall(r"\$\{(\w+)", pattern)) & RESOURCES.keys()
        case dict():
            return {name for each in value.values() for name in references(each)}
        case list():
            return {name for each in value for name in references(each)}
    return set()


def test_a_stack_has_nothing_of_iot_core_without_an_endpoint() -> None:
    assert TEMPLATE["Conditions"]["WithDevices"] == {"Fn::Not": [{"Fn::Equals": [{"Ref": "IotEndpoint"}, ""]}]}
    assert PARAMETERS["IotEndpoint"]["Default"] == ""
    of_devices = of_type("AWS::IoT::") | {
        name: each for name, each in RESOURCES.items() if name.startswith(DEVICE_FUNCTIONS)
    }
    assert len(of_devices) > 10
    for name, each in of_devices.items():
        assert each.get("Condition") == "WithDevices", name


def test_what_every_stack_has_refers_to_no_device_resource() -> None:
    of_devices = {name for name, each in RESOURCES.items() if each.get("Condition") == "WithDevices"}
    for name, each in (RESOURCES | TEMPLATE["Outputs"]).items():
        if each.get("Condition") == "WithDevices":
            continue
        assert not references(each) & of_devices, name


def test_deletion_leaves_tables_and_the_devices_endpoint() -> None:
    left = {name for name, each in RESOURCES.items() if "Retain" in each.get("DeletionPolicy", "")}
    tables = of_type("AWS::DynamoDB::Table").items()
    data = {name for name, each in tables if "PointInTimeRecoverySpecification" in each["Properties"]}
    assert left == data | {"DeviceEndpoint", "DeviceAuthorizer"}
    assert {RESOURCES[name]["Type"] for name in left} == {"AWS::DynamoDB::Table", *UNDELETABLE}
    section = DEPLOYING.partition("## Taking it down")[2].partition("\n## ")[0]
    assert {name for name in left if f"`{name}`" not in section} == set()


def test_a_later_stack_may_have_the_name_of_a_deleted_one() -> None:
    """CloudFormation makes the names of the resources that are left."""
    for name, each in RESOURCES.items():
        if "Retain" in each.get("DeletionPolicy", ""):
            named = [
                key for key in each["Properties"] if key in ("TableName", "DomainConfigurationName", "AuthorizerName")
            ]
            assert not named, name


def test_devices_are_removed_before_the_stack() -> None:
    """The steps of the section remove each resource before what it is used by could keep AWS from deleting it."""
    section = DEPLOYING.partition("## Taking it down")[2].partition("\n## ")[0]
    steps = re.findall(r"^\d\. .*?(?=^\d\. |\Z)", section, re.MULTILINE | re.DOTALL)
    deletion = next(number for number, step in enumerate(steps) if "sam delete" in step)
    blocked = {name for name, each in RESOURCES.items() if each["Type"] in IN_USE_BY_DEVICES}
    before = "".join(steps[:deletion])
    assert blocked
    assert {name for name in blocked if f"`{name}`" not in before} == set()
    after = "".join(steps[deletion + 1 :])
    commands = re.findall(r"aws (?:iot|dynamodb) ([a-z-]+)", after)
    order = ["update-domain-configuration", "delete-domain-configuration", "update-authorizer", "delete-authorizer"]
    assert [each for each in commands if each in order] == order
    assert commands.index("update-table") < commands.index("delete-table")


@pytest.mark.parametrize("name", sorted(of_type("AWS::Serverless::LayerVersion")))
def test_layers_have_the_stacks_name(name: str) -> None:
    layer = f"${{AWS::StackName}}-{name.removesuffix('Layer').lower()}"
    assert RESOURCES[name]["Properties"]["LayerName"] == {"Fn::Sub": layer}


def test_tracing_is_a_parameter() -> None:
    assert TEMPLATE["Globals"]["Function"]["Tracing"] == {"Ref": "Tracing"}
    assert not [name for name, each in LAMBDAS.items() if "Tracing" in each]


def test_a_budget_needs_an_address() -> None:
    assert RESOURCES["Budget"]["Condition"] == "WithBudget"
    assert "BudgetsNeedAnAddress" in TEMPLATE["Rules"]
