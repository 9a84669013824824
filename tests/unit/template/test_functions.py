"""The template against the catalogue: no method without function, route and log, and no function without code."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from infra.local.template import FILE, load
from shared.rpc.catalogue import catalogue
from tests.helpers.template import (
    BY_NAME,
    FUNCTIONS,
    LAMBDAS,
    LOGS,
    LONGEST_STACK_NAME,
    METHODS,
    RESOURCES,
    function_name,
)


@pytest.mark.parametrize("method", METHODS)
def test_each_method_has_a_function_and_a_route(method: str) -> None:
    entry = catalogue().methods[method]
    _, properties = BY_NAME[entry.function]
    assert properties["Handler"] == f"{entry.function.replace('-', '.')}.handler"
    assert [route.key for route in load().routes if route.function == entry.function] == [f"POST /{method}"]


def test_each_server_function_is_a_method() -> None:
    servers = {name.replace("-", "_") for name in catalogue().servers}
    deployed = {name for name in BY_NAME if name.partition("-")[0] in servers}
    assert deployed == {entry.function for entry in catalogue().methods.values()}


def test_longest_stack_name_is_documented() -> None:
    documented = re.search(r"at most (\d+) characters", (FILE.parent / "docs" / "deploying.md").read_text())
    assert documented
    assert int(documented[1]) == LONGEST_STACK_NAME


def test_handlers_and_modules_match() -> None:
    handlers = {each["Handler"].removesuffix(".handler") for each in LAMBDAS.values()}
    with_handler = {
        ".".join(file.relative_to(FUNCTIONS).with_suffix("").parts)
        for file in FUNCTIONS.rglob("*.py")
        if "\ndef handler(" in file.read_text()
    }
    assert handlers == with_handler
    assert all(importlib.util.find_spec(module) for module in handlers)


@pytest.mark.parametrize("logical", sorted(LAMBDAS))
def test_each_function_has_log_retention(logical: str) -> None:
    name = function_name(LAMBDAS[logical])
    (group,) = [each for each in LOGS if each["LogGroupName"] == {"Fn::Sub": f"/kho/${{Stack}}/{name}"}]
    assert group["RetentionInDays"] == {"Ref": "RetentionDays"}
    assert LAMBDAS[logical]["LoggingConfig"]["LogGroup"] == {"Fn::Sub": f"/kho/${{AWS::StackName}}/{name}"}
    # Otherwise an early invocation would create a log group without retention.
    assert RESOURCES[logical]["DependsOn"] == "Logs"


def test_locks_name_no_package_registry() -> None:
    root = Path(FILE).parent
    locks = ["requirements.lock", "infra/local/dynoxide/package-lock.json", "infra/clients/console/nodejs.lock"]
    locks += ["infra/clients/console/package-lock.json"]
    patterns = ("infra/deploy/layers/*.lock", "tests/**/*.lock", "tests/**/package-lock.json")
    locks += [str(lock) for pattern in patterns for lock in root.glob(pattern)]
    for lock in locks:
        assert "://" not in (root / lock).read_text()
