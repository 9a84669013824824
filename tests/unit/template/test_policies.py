"""What each function may do, which secrets it may read and whom it may call."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from endpoints import device_mcp
from shared.rpc.catalogue import catalogue
from shared.rpc.mcp_catalog import mcp_catalog
from tests.helpers.template import BY_NAME, LAMBDAS, METHODS, PARAMETERS, TEMPLATE, actions, statements

if TYPE_CHECKING:
    from collections.abc import Iterable


# Devices' topics and clients are not the template's to name, but what is around their names is.
OF_DEVICES = {
    "iot:Connect": "client/kho-backend-*",
    "iot:Subscribe": "topicfilter/devices/*/up",
    "iot:Receive": "topic/devices/*/up",
    "iot:Publish": "topic/devices/*/down",
    "iot:GetConnection": "client/*",
    "iot:SendDirectMessage": "client/*",
}


@pytest.mark.parametrize("logical", sorted(LAMBDAS))
def test_policies_have_no_wildcards(logical: str) -> None:
    for statement in statements(LAMBDAS[logical]):
        assert not [action for action in actions(statement) if "*" in action]
        named = statement["Resource"]
        if actions(statement) == ["bedrock:Rerank"]:
            continue  # knows no resources; the model that it calls is named in a statement of its own
        for resource in named if isinstance(named, list) else [named]:
            beginning = OF_DEVICES.get(actions(statement)[0], "")
            assert "*" not in json.dumps(resource).replace(f':{beginning}"', "" if beginning else ':"')
            assert not beginning or len(actions(statement)) == 1


def test_direct_messages_are_limited_to_device_topics() -> None:
    sending = [
        each
        for properties in LAMBDAS.values()
        for each in statements(properties)
        if "iot:SendDirectMessage" in actions(each)
    ]
    assert sending
    assert all(each["Condition"] == {"StringLike": {"iot:Topic": "devices/*/down"}} for each in sending)


def granted(logical: str, action: str) -> set[str]:
    """The parameters that name what a function may do `action` to."""
    found = [json.dumps(each["Resource"]) for each in statements(LAMBDAS[logical]) if action in actions(each)]
    return {name for name in PARAMETERS for resource in found if f"${{{name}}}" in resource or f'"{name}"' in resource}


@pytest.mark.parametrize("logical", sorted(LAMBDAS))
def test_only_index_and_model_users_may_read_their_secrets(logical: str) -> None:
    keys, models = granted(logical, "secretsmanager:GetSecretValue"), granted(logical, "bedrock:InvokeModel")
    indexes = {"Ref": "KnowledgeLayer"} in LAMBDAS[logical].get("Layers", [])
    assert ("QdrantKeySecret" in keys) is indexes
    assert not models & {"EmbeddingModel", "RerankModel"} or indexes
    assert ("ModelKeySecret" in keys) is ("Model" in models) is ("ModelArns" in models)
    assert ("RerankModel" in models) is any("bedrock:Rerank" in actions(each) for each in statements(LAMBDAS[logical]))


@pytest.mark.parametrize("logical", sorted(LAMBDAS))
def test_only_initializing_functions_may_read_the_vision_token(logical: str) -> None:
    asks = any("iot:SendDirectMessage" in actions(each) for each in statements(LAMBDAS[logical]))
    assert ("VisionTokenSecret" in granted(logical, "secretsmanager:GetSecretValue")) is asks


def test_secrets_are_not_in_parameters_or_environments() -> None:
    assert not [name for name, parameter in PARAMETERS.items() if parameter.get("NoEcho")]
    environments = [TEMPLATE["Globals"]["Function"], *LAMBDAS.values()]
    named = {name for each in environments for name in each.get("Environment", {}).get("Variables", {})}
    assert {"KHO_VISION_TOKEN_SECRET", "KHO_QDRANT_KEY_SECRET", "KHO_MODEL_KEY_SECRET"} <= named
    assert not [name for name in named if name.endswith(("TOKEN", "KEY", "PASSWORD"))]


def test_searching_functions_may_invoke_models() -> None:
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


def test_jsonrpc_endpoint_may_invoke_exactly_all_methods() -> None:
    assert callable_from("endpoints-jsonrpc") == functions_of(METHODS)


def test_mcp_endpoint_may_invoke_exactly_its_tools() -> None:
    reached = {tool.method for tool in mcp_catalog().tools}
    reached |= {method for each in mcp_catalog().resources for method in (each.read, each.listing) if method}
    assert callable_from("endpoints-mcp") == functions_of(reached)


def test_public_mcp_endpoint_may_invoke_exactly_recall_kit_tools() -> None:
    reached = {tool.method for tool in mcp_catalog().of("recall-kit").tools}
    assert reached == {f"recall-kit/{name}" for name in ("query_experiences", "submit_experience", "get_experience")}
    assert callable_from("endpoints-recall_kit_mcp") == functions_of(reached)


def test_device_mcp_endpoint_may_invoke_exactly_device_methods() -> None:
    assert callable_from("endpoints-device_mcp") == functions_of((device_mcp.GET, device_mcp.LIST, device_mcp.CALL))
