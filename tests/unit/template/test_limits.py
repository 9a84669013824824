"""AWS's limits on a stack: each has room with the longest names and values, for today's methods and 40 more."""

from __future__ import annotations

import json
from functools import cache

import pytest

from infra.deploy.function_resources import template
from infra.deploy.observability import logs, observability
from infra.local.template import FILE, document, logical_id, parse
from tests.helpers.stack_limits import (
    LIMITS,
    MORE_METHODS,
    MOST_SHARE,
    PROCESSED_LIMITS,
    Stack,
    documented_shares,
    functions_with_more_methods,
    shares,
)
from tests.helpers.template import BY_NAME, LONGEST_STACK_NAME, RESOURCES

LAMBDA_NAME_CHARACTERS = 64
PROVISIONING_NAME_CHARACTERS = 36

METHODS = ("today", "with more methods")


@cache
def text_of(methods: str) -> str:
    """Return the template of today, or with more methods."""
    return FILE.read_text(encoding="utf-8") if methods == "today" else template(functions_with_more_methods())


@cache
def needs_of(methods: str) -> dict[str, int]:
    return Stack(text_of(methods)).needs()


@pytest.mark.parametrize("methods", METHODS)
def test_each_limit_has_room(methods: str) -> None:
    needs = needs_of(methods)
    assert needs.keys() == LIMITS.keys()
    assert {name: need for name, need in needs.items() if need >= MOST_SHARE * LIMITS[name]} == {}, needs


@pytest.mark.parametrize("methods", METHODS)
def test_nested_stacks_have_room(methods: str) -> None:
    for make in (logs, observability):
        text = make(parse(text_of(methods)))
        assert len(document(text)["Resources"]) < MOST_SHARE * PROCESSED_LIMITS["resources"]
        assert len(text.encode()) < MOST_SHARE * PROCESSED_LIMITS["processed template (bytes)"]


def test_more_methods_are_deployed_as_others() -> None:
    """The imitations have routes, roles, variables and the endpoints' permissions."""
    today, more = (parse(text_of(methods)) for methods in METHODS)
    imitations = more.functions.keys() - today.functions.keys()
    assert len(imitations) == MORE_METHODS
    assert {len(name) for name in imitations} == {max(map(len, today.functions))}
    assert {route.function for route in more.routes} - {route.function for route in today.routes} == imitations
    resources = document(text_of("with more methods"))["Resources"]
    assert {f"{logical_id(name)}Role" for name in imitations} <= resources.keys()
    policies = json.dumps([each for name, each in resources.items() if name.endswith("Invocation")])
    assert all(f'["{logical_id(name)}", "Arn"]' in policies for name in imitations)
    most = max(len(each.variables or ()) for each in today.functions.values())
    assert max(len(more.functions[name].variables or ()) for name in imitations) == most


def test_names_that_derive_from_the_stacks_fit() -> None:
    """Function names bound the stack's name. IoT Core allows 36 characters in a provisioning template's."""
    names = [len(f"{'s' * LONGEST_STACK_NAME}-{name}") for name in BY_NAME]
    assert max(names) == LAMBDA_NAME_CHARACTERS
    provisioning = RESOURCES["DeviceProvisioning"]["Properties"]["TemplateName"]["Fn::Sub"]
    assert len(provisioning.replace("${AWS::StackName}", "s" * LONGEST_STACK_NAME)) <= PROVISIONING_NAME_CHARACTERS


def test_documented_limits_are_the_measured_ones() -> None:
    """Shares are rounded up to five percent. `make sam` measures the processed template."""
    today, more = (shares(needs_of(methods), LIMITS) for methods in METHODS)
    documented = documented_shares()
    assert documented.keys() == LIMITS.keys() | PROCESSED_LIMITS.keys()
    assert {name: documented[name] for name in LIMITS} == {
        name: (LIMITS[name], today[name], more[name]) for name in LIMITS
    }
