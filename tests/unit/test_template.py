"""The template against the catalogue: no method without function, route, log and policy; no function without code."""

from __future__ import annotations

import importlib.util
import json
import math
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from doors import device_mcp
from doors.resource_metadata import MCP, WELL_KNOWN
from infra import logs
from infra.local.template import FILE, TemplateLoader, load
from shared.rpc.catalogue import catalogue
from shared.rpc.offers import offers

if TYPE_CHECKING:
    from collections.abc import Iterable

FUNCTIONS = FILE.parent / "functions"
TEMPLATE = yaml.load(FILE.read_text(), TemplateLoader)
RESOURCES: dict[str, dict[str, Any]] = TEMPLATE["Resources"]
PARAMETERS = TEMPLATE["Parameters"]
LOGS = [each["Properties"] for each in yaml.safe_load(logs.FILE.read_text())["Resources"].values()]
LAMBDAS = {name: each["Properties"] for name, each in RESOURCES.items() if each["Type"] == "AWS::Serverless::Function"}
METHODS = sorted(catalogue().methods)


# Devices' topics and clients are not the template's to name, but what is around their names is.
OF_DEVICES = {
    "iot:Connect": "client/kho-backend-*",
    "iot:Subscribe": "topicfilter/devices/*/up",
    "iot:Receive": "topic/devices/*/up",
    "iot:Publish": "topic/devices/*/down",
    "iot:GetConnection": "client/*",
    "iot:SendDirectMessage": "client/*",
}


def function_name(properties: dict[str, Any]) -> str:
    pattern: str = properties["FunctionName"]["Fn::Sub"]
    return pattern.removeprefix("${AWS::StackName}-")


BY_NAME = {function_name(properties): (logical, properties) for logical, properties in LAMBDAS.items()}


def statements(properties: dict[str, Any]) -> list[dict[str, Any]]:
    """A function's statements, those that a condition adds included."""
    found = [statement for policy in properties.get("Policies", []) for statement in policy["Statement"]]
    return [each["Fn::If"][1] if "Fn::If" in each else each for each in found]


def actions(statement: dict[str, Any]) -> list[str]:
    action = statement["Action"]
    return action if isinstance(action, list) else [action]


@pytest.mark.parametrize("method", METHODS)
def test_each_method_is_a_function_with_a_route_of_its_own(method: str) -> None:
    entry = catalogue().methods[method]
    _, properties = BY_NAME[entry.function]
    assert properties["Handler"] == f"{entry.function.replace('-', '.')}.handler"
    routes = {
        (event["Properties"]["Method"], event["Properties"]["Path"])
        for event in properties["Events"].values()
        if event["Type"] == "HttpApi"
    }
    assert routes == {("POST", f"/{method}")}


def test_each_function_of_a_server_is_a_method() -> None:
    servers = {name.replace("-", "_") for name in catalogue().servers}
    deployed = {name for name in BY_NAME if name.partition("-")[0] in servers}
    assert deployed == {entry.function for entry in catalogue().methods.values()}


def test_each_handler_has_its_module_and_each_module_its_function() -> None:
    handlers = {each["Handler"].removesuffix(".handler") for each in LAMBDAS.values()}
    with_handler = {
        ".".join(file.relative_to(FUNCTIONS).with_suffix("").parts)
        for file in FUNCTIONS.rglob("*.py")
        if "\ndef handler(" in file.read_text()
    }
    assert handlers == with_handler
    assert all(importlib.util.find_spec(module) for module in handlers)


@pytest.mark.parametrize("logical", sorted(LAMBDAS))
def test_each_function_keeps_a_log_for_a_limited_time(logical: str) -> None:
    name = function_name(LAMBDAS[logical])
    (kept,) = [each for each in LOGS if each["LogGroupName"] == {"Fn::Sub": f"/kho/${{Stack}}/{name}"}]
    assert kept["RetentionInDays"] == {"Ref": "RetentionDays"}
    assert LAMBDAS[logical]["LoggingConfig"]["LogGroup"] == {"Fn::Sub": f"/kho/${{AWS::StackName}}/{name}"}
    # Else a function that is called at once would make a log without an end.
    assert RESOURCES[logical]["DependsOn"] == "Logs"


@pytest.mark.parametrize("logical", sorted(LAMBDAS))
def test_policies_name_actions_and_resources(logical: str) -> None:
    for statement in statements(LAMBDAS[logical]):
        assert not [action for action in actions(statement) if "*" in action]
        named = statement["Resource"]
        if actions(statement) == ["bedrock:Rerank"]:
            continue  # knows no resources; the model that it calls is named in a statement of its own
        for resource in named if isinstance(named, list) else [named]:
            beginning = OF_DEVICES.get(actions(statement)[0], "")
            assert "*" not in json.dumps(resource).replace(f':{beginning}"', "" if beginning else ':"')
            assert not beginning or len(actions(statement)) == 1


def test_direct_messages_go_to_the_devices_own_topics_alone() -> None:
    sending = [
        each
        for properties in LAMBDAS.values()
        for each in statements(properties)
        if "iot:SendDirectMessage" in actions(each)
    ]
    assert sending
    assert all(each["Condition"] == {"StringLike": {"iot:Topic": "devices/*/down"}} for each in sending)


def test_what_a_rule_cannot_bring_is_kept_as_a_dead_letter() -> None:
    rules = {
        name: each["Properties"]["TopicRulePayload"]
        for name, each in RESOURCES.items()
        if each["Type"] == "AWS::IoT::TopicRule"
    }
    allowed = [each["Properties"] for each in RESOURCES.values() if each["Type"] == "AWS::Lambda::Permission"]
    assert rules
    for name, rule in rules.items():
        assert rule["ErrorAction"]["Sqs"]["QueueUrl"] == {"Ref": "DeadLetters"}
        [action] = rule["Actions"]
        [permission] = [each for each in allowed if each["SourceArn"] == {"Fn::GetAtt": [name, "Arn"]}]
        assert permission["FunctionName"] == action["Lambda"]["FunctionArn"]
        assert permission["SourceAccount"] == {"Ref": "AWS::AccountId"}


def granted(logical: str, action: str) -> set[str]:
    """The parameters that name what a function may do `action` to."""
    found = [json.dumps(each["Resource"]) for each in statements(LAMBDAS[logical]) if action in actions(each)]
    return {name for name in PARAMETERS for resource in found if f"${{{name}}}" in resource or f'"{name}"' in resource}


@pytest.mark.parametrize("logical", sorted(LAMBDAS))
def test_whoever_uses_the_index_or_a_model_may_read_its_key_and_nobody_else(logical: str) -> None:
    keys, models = granted(logical, "secretsmanager:GetSecretValue"), granted(logical, "bedrock:InvokeModel")
    indexes = {"Ref": "KnowledgeLayer"} in LAMBDAS[logical].get("Layers", [])
    assert ("QdrantKeySecret" in keys) is indexes
    assert not models & {"EmbeddingModel", "RerankModel"} or indexes
    assert ("ModelKeySecret" in keys) is ("Model" in models) is ("ModelArns" in models)
    assert ("RerankModel" in models) is any("bedrock:Rerank" in actions(each) for each in statements(LAMBDAS[logical]))


@pytest.mark.parametrize("logical", sorted(LAMBDAS))
def test_whoever_asks_devices_who_they_are_may_read_the_token_of_cameras_and_nobody_else(logical: str) -> None:
    asks = any("iot:SendDirectMessage" in actions(each) for each in statements(LAMBDAS[logical]))
    assert ("VisionTokenSecret" in granted(logical, "secretsmanager:GetSecretValue")) is asks


def test_no_secret_is_a_parameter_or_in_an_environment() -> None:
    assert not [name for name, parameter in PARAMETERS.items() if parameter.get("NoEcho")]
    environments = [TEMPLATE["Globals"]["Function"], *LAMBDAS.values()]
    named = {name for each in environments for name in each.get("Environment", {}).get("Variables", {})}
    assert {"KHO_VISION_TOKEN_SECRET", "KHO_QDRANT_KEY_SECRET", "KHO_MODEL_KEY_SECRET"} <= named
    assert not [name for name in named if name.endswith(("TOKEN", "KEY", "PASSWORD"))]


def test_whoever_searches_or_asks_a_model_is_let() -> None:
    for logical in ("AgentDataQueryKnowledge", "ResearchAgentQueryKnowledgeBase"):
        assert granted(logical, "bedrock:InvokeModel") >= {"EmbeddingModel", "RerankModel"}
    for logical in ("AgentDataQueryKnowledge", "MemoryServerGetOrCreateSummary"):
        assert "ModelKeySecret" in granted(logical, "secretsmanager:GetSecretValue")


def callable_from(function: str) -> set[str]:
    """The functions that `function` may call."""
    invoking = [each for each in statements(BY_NAME[function][1]) if "lambda:InvokeFunction" in actions(each)]
    return {arn["Fn::GetAtt"][0] for statement in invoking for arn in statement["Resource"]}


def functions_of(methods: Iterable[str]) -> set[str]:
    return {BY_NAME[catalogue().methods[name].function][0] for name in methods}


def test_the_jsonrpc_door_may_call_every_method_and_nothing_else() -> None:
    assert callable_from("doors-jsonrpc") == functions_of(METHODS)


def test_the_mcp_door_may_call_what_it_offers_and_nothing_else() -> None:
    reached = {tool.method for tool in offers().tools}
    reached |= {method for each in offers().resources for method in (each.read, each.listing) if method}
    assert callable_from("doors-mcp") == functions_of(reached)


def test_the_mcp_door_for_everyone_may_call_recall_kits_tools_and_nothing_else() -> None:
    reached = {tool.method for tool in offers().of("recall-kit").tools}
    assert reached == {f"recall-kit/{name}" for name in ("query_experiences", "submit_experience", "get_experience")}
    assert callable_from("doors-recall_kit_mcp") == functions_of(reached)


def test_the_mcp_door_of_a_device_may_call_what_leads_to_it_and_nothing_else() -> None:
    assert callable_from("doors-device_mcp") == functions_of((device_mcp.GET, device_mcp.LIST, device_mcp.CALL))


def test_the_mcp_door_answers_what_clients_may_try() -> None:
    routes = {(route.method, route.path) for route in load().routes if route.function == "doors-mcp"}
    assert routes == {("POST", "/mcp"), ("GET", "/mcp"), ("DELETE", "/mcp")}
    open_to_all = {(route.method, route.path) for route in load().routes if route.function == "doors-recall_kit_mcp"}
    assert open_to_all == {(method, "/mcp/recall-kit") for method in ("POST", "GET", "DELETE")}
    of_devices = {(route.method, route.path) for route in load().routes if route.function == "doors-device_mcp"}
    assert of_devices == {(method, "/mcp/devices/{device_id}") for method in ("POST", "GET", "DELETE")}
    told = {route.path for route in load().routes if route.function == "doors-resource_metadata"}
    assert told == {WELL_KNOWN, WELL_KNOWN + MCP}


def test_what_a_worker_cannot_do_is_kept_as_a_dead_letter() -> None:
    streams = [
        event["Properties"]
        for properties in LAMBDAS.values()
        for event in properties.get("Events", {}).values()
        if event["Type"] == "DynamoDB"
    ]
    assert streams
    for stream in streams:
        # SAM allows the function to send there only where the type is named.
        kept = {"Type": "SQS", "Destination": {"Fn::GetAtt": ["DeadLetters", "Arn"]}}
        assert stream["DestinationConfig"]["OnFailure"] == kept
        assert stream["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
        assert stream["BisectBatchOnFunctionError"] is True


def test_no_stream_has_more_readers_than_aws_lets_read_a_shard() -> None:
    readers = Counter(each.table for each in load().streams)
    assert max(readers.values()) <= 2, readers


def test_whoever_waits_for_the_index_waits_as_long_as_it_may_take_to_bring_it_back() -> None:
    waiting = [each for each in load().streams if each.function.startswith("workers-index_")]
    assert {each.function for each in waiting} >= {"workers-index_documents", "workers-index_knowledge"}
    for each in waiting:
        assert each.retries == math.inf
        assert 3600 <= each.record_age < 86_400, "what a stream has lost by then is a dead letter before"


def test_a_generation_is_purged_again_when_its_item_goes() -> None:
    """What a slow writer put after the first purge is found by the second, which the item's expiry causes."""
    purging = next(each for each in load().streams if each.function == "workers-purge_messages")
    assert purging.filters[0]["eventName"] == ["INSERT", "REMOVE"]
    memory = next(each for each in load().tables if each.name == purging.table)
    assert memory.expiry_attribute == "expires_at"


def test_data_outlives_the_stack() -> None:
    tables = [each for each in RESOURCES.values() if each["Type"] == "AWS::DynamoDB::Table"]
    assert tables
    for table in tables:
        assert table["DeletionPolicy"] == table["UpdateReplacePolicy"] == "Retain"
        assert table["Properties"]["BillingMode"] == "PAY_PER_REQUEST"
        assert table["Properties"]["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"]
        assert table["Properties"]["SSESpecification"]["SSEEnabled"]


def test_only_public_routes_have_no_authorizer() -> None:
    """Everything else stands behind the gateway's authorizer, or verifies credentials in the function."""
    open_to_all = {route.path for route in load().routes if not route.authorized}
    assert open_to_all <= {
        "/health",
        "/servers",
        "/servers/{server_name}/capabilities",
        "/openapi.json",
        "/jsonrpc",
        "/actions",
        "/mcp",
        "/mcp/devices/{device_id}",
        "/mcp/recall-kit",
        "/recall-kit/query_experiences",
        "/recall-kit/submit_experience",
        "/recall-kit/get_experience",
        WELL_KNOWN,
        WELL_KNOWN + MCP,
    }


def test_every_route_is_throttled_and_what_costs_more_has_less() -> None:
    stage = RESOURCES["Api"]["Properties"]
    usual, own = stage["DefaultRouteSettings"], stage["RouteSettings"]
    routes = {route.key for route in load().routes}
    assert own.keys() <= routes
    for settings in (usual, *own.values()):
        assert 0 < settings["ThrottlingRateLimit"] <= settings["ThrottlingBurstLimit"]
    assert own["POST /recall-kit/submit_experience"]["ThrottlingRateLimit"] < usual["ThrottlingRateLimit"]
    assert own["POST /tool-server/tools/call"]["ThrottlingRateLimit"] < usual["ThrottlingRateLimit"]


def test_no_registry_is_named() -> None:
    root = Path(FILE).parent
    locks = ["requirements.lock", "infra/local/dynoxide/package-lock.json", "infra/local/dynoxide/nodejs.lock"]
    locks += ["tests/conformance/package-lock.json"]
    locks += [str(lock) for pattern in ("infra/layers/*.lock", "tests/**/*.lock") for lock in root.glob(pattern)]
    for lock in locks:
        assert "://" not in (root / lock).read_text()
