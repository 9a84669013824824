"""Each function has a sample event, equal to its trigger's."""

from __future__ import annotations

import importlib
import json
import re
from typing import Any

import pytest

from infra.local.streams import matches_filter
from infra.local.template import load
from shared.rpc.catalogue import catalogue
from shared.rpc.method import read
from tests.events import FOLDER, TENANT, event
from tests.suites.rie.functions import deployed_functions

TEMPLATE = load()
FUNCTIONS = {function.name: function for function in deployed_functions()}
BY_TRIGGER = {
    trigger: sorted(function.name for function in FUNCTIONS.values() if function.trigger == trigger)
    for trigger in ("HTTP", "stream", "rule", "authorizer", "functions", "asynchronous", "IoT Core")
}
METHODS = {entry.function: entry for entry in catalogue().methods.values()}


def of(function: str) -> Any:
    return json.loads(event(function))


def test_each_function_has_exactly_one_event() -> None:
    assert {file.stem for file in FOLDER.glob("*.json")} == set(FUNCTIONS)
    assert set(TEMPLATE.functions) == set(FUNCTIONS) == {name for names in BY_TRIGGER.values() for name in names}


@pytest.mark.parametrize("function", BY_TRIGGER["HTTP"])
def test_http_event_uses_the_functions_route(function: str) -> None:
    sent = of(function)
    route = next(route for route in TEMPLATE.routes if route.key == sent["routeKey"])
    context = sent["requestContext"]
    assert route.function == function
    assert sent["version"] == "2.0"
    assert (context["http"]["method"], context["http"]["path"]) == (route.method, sent["rawPath"])
    assert context["routeKey"] == sent["routeKey"]
    pattern = re.sub(r"\{(\w+)\+\}", r"(?P<\1>.*)", re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", route.path))
    named = re.fullmatch(pattern, sent["rawPath"])
    assert named
    assert named.groupdict() == sent.get("pathParameters", {})
    assert ("authorizer" in context) == route.authorized
    assert all(name == name.lower() for name in sent["headers"])


@pytest.mark.parametrize("function", sorted(METHODS))
def test_http_event_has_valid_params(function: str) -> None:
    handler = importlib.import_module(function.replace("-", ".")).handler
    read(handler.method.params, json.loads(of(function)["body"]))


@pytest.mark.parametrize("function", BY_TRIGGER["stream"])
def test_stream_records_pass_the_filters(function: str) -> None:
    trigger = next(each for each in TEMPLATE.streams if each.function == function)
    records = of(function)["Records"]
    assert 1 <= len(records) <= trigger.batch_size
    for record in records:
        assert record["eventSource"] == "aws:dynamodb"
        assert f":table/{trigger.table}/stream/" in record["eventSourceARN"]
        assert record["dynamodb"]["SequenceNumber"]
        assert not trigger.filters or any(matches_filter(each, record) for each in trigger.filters)


@pytest.mark.parametrize("function", BY_TRIGGER["rule"])
def test_iot_event_matches_the_rule(function: str) -> None:
    sql = [rule.sql for rule in TEMPLATE.rules if rule.function == function]
    selected = re.findall(r" AS (\w+)", sql[0])
    assert (
        set(of(function)) == set(selected)
        if selected
        else any(f"/{of(function)['eventType']}/" in each for each in sql)
    )


@pytest.mark.parametrize("function", BY_TRIGGER["authorizer"])
def test_authorizer_is_called_for_a_request(function: str) -> None:
    sent = of(function)
    route = next(route for route in TEMPLATE.routes if route.key == sent["routeKey"])
    assert route.authorized
    assert (sent["version"], sent["type"]) == ("2.0", "REQUEST")
    assert sent["identitySource"] == [sent["headers"]["authorization"]]
    assert sent["routeArn"].endswith(f"/{route.method}{route.path}")


def test_all_events_use_one_tenant() -> None:
    callers = [of(function)["requestContext"].get("authorizer") for function in BY_TRIGGER["HTTP"]]
    assert {caller["lambda"]["tenant_id"] for caller in callers if caller} == {TENANT}
