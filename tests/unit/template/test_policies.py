"""The policies of each function: its actions, its secrets, and the functions it may invoke."""

from __future__ import annotations

import json
import re
from collections import Counter
from importlib.resources import files
from typing import TYPE_CHECKING

import pytest

from api.deployment import INDEX_MEMORY
from endpoints import device_mcp
from infra.local.template import FILE, load
from shared.rpc.catalogue import catalogue
from shared.rpc.mcp_catalog import mcp_catalog
from shared.search.embedding.function import BULK_FUNCTION, URGENT_FUNCTION
from tests.helpers.template import (
    BY_NAME,
    LAMBDAS,
    METHODS,
    PARAMETERS,
    RESOURCES,
    TEMPLATE,
    actions,
    function_name,
    invocable_functions,
    managed_policies,
    statements,
)
from workers.wake_webhooks import FUNCTION as DELIVERY

if TYPE_CHECKING:
    from collections.abc import Iterable

WAKING = "workers-wake_webhooks"
EMBEDDING = {URGENT_FUNCTION: "EmbeddingFunctionAccess", BULK_FUNCTION: "BulkEmbeddingFunctionAccess"}
"""The embedding functions, and the policies that allow to invoke them."""

# The template cannot name devices' topics and clients, only their prefixes and suffixes.
OF_DEVICES = {
    "iot:Connect": "client/kho-backend-*",
    "iot:Subscribe": "topicfilter/devices/*/up",
    "iot:Receive": "topic/devices/*/up",
    "iot:Publish": "topic/devices/*/down",
    "iot:GetConnection": "client/*",
    "iot:SendDirectMessage": "client/*",
    "iot:DeleteConnection": "client/*",
}


def test_managed_policies_are_shared_and_follow_their_condition() -> None:
    attached = [each for properties in LAMBDAS.values() for each in managed_policies(properties).items()]
    declared = {
        name: resource.get("Condition")
        for name, resource in RESOURCES.items()
        if resource["Type"] == "AWS::IAM::ManagedPolicy"
    }
    assert set(attached) == set(declared.items())
    # An inline policy cannot have a condition.
    assert min(Counter(name for name, condition in attached if not condition).values()) > 1


@pytest.mark.parametrize("logical", sorted(LAMBDAS))
def test_policies_have_no_wildcards(logical: str) -> None:
    group = f"/kho/${{AWS::StackName}}/{function_name(LAMBDAS[logical])}:*"
    for statement in statements(LAMBDAS[logical]):
        assert not [action for action in actions(statement) if "*" in action]
        named = statement["Resource"]
        if named == "*" or actions(statement) == ["lambda:InvokeFunction"]:
            continue  # tested below
        if actions(statement) == ["logs:CreateLogStream", "logs:PutLogEvents"]:
            assert named["Fn::Sub"].endswith(f":log-group:{group}")
            continue
        for resource in named if isinstance(named, list) else [named]:
            beginning = OF_DEVICES.get(actions(statement)[0], "")
            assert "*" not in json.dumps(resource).replace(f':{beginning}"', "" if beginning else ':"')
            assert not beginning or len(actions(statement)) == 1


def test_only_documented_actions_without_resource_types_are_allowed_on_everything() -> None:
    """AWS's service authorization reference, as cfn-lint has it, lists no resource type for them."""
    roles = [each["Properties"] for each in RESOURCES.values() if each["Type"] == "AWS::IAM::Role"]
    documents = [policy["PolicyDocument"] for each in roles for policy in each.get("Policies", [])]
    documents += [
        each["Properties"]["PolicyDocument"] for each in RESOURCES.values() if each["Type"] == "AWS::IAM::ManagedPolicy"
    ]
    allowed = {
        action
        for document in documents
        for statement in document["Statement"]
        if "*" in (named if isinstance(named := statement["Resource"], list) else [named])
        for action in actions(statement)
    }
    reference = json.loads((files("cfnlint") / "data/AdditionalSpecs/Policies.json").read_text())
    for action in allowed:
        service, _, name = action.partition(":")
        assert not reference[service]["Actions"].get(name.lower(), {}).get("Resources"), action
    section = (FILE.parent / "docs/security.md").read_text().partition("## Permissions on every resource")[2]
    assert set(re.findall(r"^\| `(\w+:\w+)`", section, re.MULTILINE)) == allowed


def test_no_function_has_a_role_made_by_sam() -> None:
    """SAM's own roles may write to every log group and read every stream of the account."""
    for logical, properties in LAMBDAS.items():
        assert properties["Role"] == {"Fn::GetAtt": [f"{logical}Role", "Arn"]}
        assert "Policies" not in properties
    policies = json.dumps([each for each in RESOURCES.values() if each["Type"] == "AWS::IAM::Role"])
    assert "arn:aws:iam::aws:policy" not in policies
    assert ":iam::aws:policy" not in policies


@pytest.mark.parametrize("logical", sorted(LAMBDAS))
def test_stream_readers_read_only_their_own_stream(logical: str) -> None:
    streams = [
        event["Properties"]["Stream"]
        for event in LAMBDAS[logical].get("Events", {}).values()
        if event["Type"] == "DynamoDB"
    ]
    reads = [each["Resource"] for each in statements(LAMBDAS[logical]) if "dynamodb:GetRecords" in actions(each)]
    assert reads == streams


@pytest.mark.parametrize("logical", sorted(LAMBDAS))
def test_secret_readers_may_use_the_secrets_key(logical: str) -> None:
    readers = any("secretsmanager:GetSecretValue" in actions(each) for each in statements(LAMBDAS[logical]))
    assert ("SecretsKeyAccess" in managed_policies(LAMBDAS[logical])) is readers


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
    """Return the parameters that name the resources on which a function may do `action`."""
    resources = [json.dumps(each["Resource"]) for each in statements(LAMBDAS[logical]) if action in actions(each)]
    return {
        name for name in PARAMETERS for resource in resources if f"${{{name}}}" in resource or f'"{name}"' in resource
    }


@pytest.mark.parametrize("logical", sorted(LAMBDAS))
def test_only_index_and_model_users_may_read_their_secrets(logical: str) -> None:
    keys, models = granted(logical, "secretsmanager:GetSecretValue"), granted(logical, "bedrock:InvokeModel")
    embeds = function_name(LAMBDAS[logical]) in EMBEDDING
    indexes = LAMBDAS[logical].get("MemorySize") == INDEX_MEMORY and not embeds
    assert ("QdrantKeySecret" in keys) is indexes
    assert not models & {"EmbeddingModel", "RerankModel"} or indexes
    assert ("ModelKeySecret" in keys) is ("Model" in models) is ("ModelArns" in models)
    assert ("RerankModel" in models) is any("bedrock:Rerank" in actions(each) for each in statements(LAMBDAS[logical]))


@pytest.mark.parametrize("logical", sorted(LAMBDAS))
def test_only_initializing_functions_may_read_the_vision_token(logical: str) -> None:
    sends = any("iot:SendDirectMessage" in actions(each) for each in statements(LAMBDAS[logical]))
    asks = sends and logical != "DeviceServerDevicesAlert"
    assert ("VisionTokenSecret" in granted(logical, "secretsmanager:GetSecretValue")) is asks


def test_secrets_are_not_in_parameters_or_environments() -> None:
    assert not [name for name, parameter in PARAMETERS.items() if parameter.get("NoEcho")]
    environments = [TEMPLATE["Globals"]["Function"], *LAMBDAS.values()]
    variables = [each.get("Environment", {}).get("Variables", {}) for each in environments]
    named = {name for each in variables for name, value in each.items() if value}
    assert {"KHO_VISION_TOKEN_SECRET", "KHO_QDRANT_KEY_SECRET", "KHO_MODEL_KEY_SECRET"} <= named
    assert not [name for name in named if name.endswith(("TOKEN", "KEY", "PASSWORD"))]


def test_searching_functions_may_invoke_models() -> None:
    for logical in ("AgentDataQueryKnowledge", "ResearchAgentQueryKnowledgeBase"):
        assert granted(logical, "bedrock:InvokeModel") >= {"EmbeddingModel", "RerankModel"}
    for logical in ("AgentDataQueryKnowledge", "MemoryServerGetOrCreateSummary"):
        assert "ModelKeySecret" in granted(logical, "secretsmanager:GetSecretValue")


def functions_of(methods: Iterable[str]) -> set[str]:
    return {catalogue().methods[name].function for name in methods}


@pytest.mark.parametrize("function", sorted(BY_NAME))
def test_invocable_functions_are_listed_one_by_one(function: str) -> None:
    """Endpoints invoke methods, functions with the index an embedding function, and one worker the delivery."""
    invoking = [each for each in statements(BY_NAME[function][1]) if "lambda:InvokeFunction" in actions(each)]
    assert all(set(arn) <= {"Fn::GetAtt", "Fn::Sub"} for statement in invoking for arn in statement["Resource"])
    invocable = invocable_functions(function)
    workers = {DELIVERY} if function == WAKING else set(EMBEDDING)
    assert invocable <= (functions_of(METHODS) if function.startswith("endpoints-") else workers)
    assert (DELIVERY in invocable) is (function == WAKING)
    policies = set(managed_policies(BY_NAME[function][1]))
    for embedding, policy in EMBEDDING.items():
        assert (embedding in invocable) is ({policy, "QdrantKeyAccess"} <= policies)


def test_bulk_work_may_invoke_only_its_own_embedding_function() -> None:
    """Urgent and bulk work never share an instance, nor the concurrency that is reserved."""
    embedding = {name: invocable_functions(name) & EMBEDDING.keys() for name in BY_NAME}
    assert {name for name, invocable in embedding.items() if BULK_FUNCTION in invocable} == {
        "workers-index_documents",
        "workers-index_experiences",
        "workers-index_knowledge",
        "workers-index_messages",
        "workers-ingest",
    }
    urgent = {name for name, invocable in embedding.items() if URGENT_FUNCTION in invocable}
    assert urgent
    assert urgent <= functions_of(METHODS)


def test_the_api_may_invoke_exactly_the_functions_of_its_routes() -> None:
    """It needs no permission at each function: these would be a hundred resources."""
    role = RESOURCES["ApiRole"]["Properties"]
    named = [each["Ref"] for each in role["ManagedPolicyArns"]]
    documents = [RESOURCES[name]["Properties"]["PolicyDocument"] for name in named]
    documents += [policy["PolicyDocument"] for policy in role["Policies"]]
    allowed = [
        arn["Fn::If"][1] if "Fn::If" in arn else arn
        for document in documents
        for statement in document["Statement"]
        for arn in statement["Resource"]
        if actions(statement) == ["lambda:InvokeFunction"]
    ]
    functions = [function_name(LAMBDAS[arn["Fn::GetAtt"][0]]) for arn in allowed]
    assert len(functions) == len(set(functions))
    assert set(functions) == {route.function for route in load().routes}
    paths = RESOURCES["Api"]["Properties"]["DefinitionBody"]["paths"]
    assert json.dumps(paths).count('"credentials": {"Fn::GetAtt": ["ApiRole", "Arn"]}') == len(load().routes)


def test_jsonrpc_endpoint_may_invoke_exactly_all_methods() -> None:
    assert invocable_functions("endpoints-jsonrpc") == functions_of(METHODS)


def test_mcp_endpoint_may_invoke_its_tools() -> None:
    reached = {tool.method for tool in mcp_catalog().tools}
    reached |= {method for each in mcp_catalog().resources for method in (each.read, each.listing) if method}
    assert functions_of(reached) <= invocable_functions("endpoints-mcp") <= functions_of(METHODS)


def test_actions_endpoint_may_invoke_exactly_agent_data() -> None:
    own = [name for name in METHODS if name.startswith("agent-data/")]
    assert invocable_functions("endpoints-actions") == functions_of(own)


def test_public_mcp_endpoint_may_invoke_exactly_recall_kit_tools() -> None:
    reached = {tool.method for tool in mcp_catalog().of("recall-kit/").tools}
    assert reached == {f"recall-kit/{name}" for name in ("query_experiences", "submit_experience", "get_experience")}
    assert invocable_functions("endpoints-recall_kit_mcp") == functions_of(reached)


def test_device_mcp_endpoint_may_invoke_exactly_device_methods() -> None:
    methods = device_mcp.GET, device_mcp.LIST, device_mcp.CALL
    assert invocable_functions("endpoints-device_mcp") == functions_of(methods)
