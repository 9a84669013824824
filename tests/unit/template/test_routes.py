"""Public routes, throttling of each route, and requests that clients may send to the endpoints."""

from __future__ import annotations

import json

from infra.local.template import load
from shared.access.oauth.resources import METADATA
from shared.rpc.catalogue import catalogue
from shared.search.embedding.function import BULK_FUNCTION, URGENT_FUNCTION
from tests.helpers.template import BY_NAME, LAMBDAS, PARAMETERS, RESOURCES, function_name

RESOURCES_OF_OAUTH = ("", "/mcp", "/mcp/{toolset}", "/mcp/devices/{device_id}")
BOARDS = {"boards-check_in", "boards-explain_photo"}
OAUTH = {f"oauth-{name}" for name in ("authorize", "register", "revoke", "sign_in", "token")}


def test_mcp_routes_cover_all_http_methods() -> None:
    routes = {(route.method, route.path) for route in load().routes if route.function == "endpoints-mcp"}
    assert routes == {(method, path) for method in ("POST", "GET", "DELETE") for path in ("/mcp", "/mcp/{toolset}")}
    open_to_all = {
        (route.method, route.path) for route in load().routes if route.function == "endpoints-recall_kit_mcp"
    }
    assert open_to_all == {(method, "/mcp/recall-kit") for method in ("POST", "GET", "DELETE")}
    of_devices = {(route.method, route.path) for route in load().routes if route.function == "endpoints-device_mcp"}
    assert of_devices == {(method, "/mcp/devices/{device_id}") for method in ("POST", "GET", "DELETE")}
    paths = {route.path for route in load().routes if route.function == "oauth-resource_metadata"}
    assert paths == {METADATA + path for path in RESOURCES_OF_OAUTH}


def test_only_public_routes_have_no_authorizer() -> None:
    """All others are behind the gateway's authorizer or verify credentials in the function."""
    open_to_all = {route.path for route in load().routes if not route.authorized}
    assert open_to_all <= {
        "/health",
        "/servers",
        "/servers/{server_name}/capabilities",
        "/openapi.json",
        "/",
        "/console",
        "/console/{path+}",
        "/jsonrpc",
        "/actions",
        "/mcp",
        "/mcp/{toolset}",
        "/mcp/devices/{device_id}",
        "/mcp/recall-kit",
        "/recall-kit/query_experiences",
        "/recall-kit/submit_experience",
        "/recall-kit/get_experience",
        *(METADATA + path for path in RESOURCES_OF_OAUTH),
        "/.well-known/oauth-authorization-server",
        *(f"/oauth/{name}" for name in ("authorize", "callback", "register", "revoke", "sign-in", "token")),
        "/token",
        "/ota",
        "/ota/{proxy+}",
        "/vision/explain",
    }


def test_every_route_is_throttled_by_cost() -> None:
    stage = RESOURCES["Api"]["Properties"]
    usual, own = stage["DefaultRouteSettings"], stage["RouteSettings"]
    routes = {route.key for route in load().routes}
    assert own.keys() <= routes
    rates = {}
    for route, settings in {"": usual, **own}.items():
        rate, burst = (PARAMETERS[settings[f"Throttling{name}Limit"]["Ref"]] for name in ("Rate", "Burst"))
        assert rate["MinValue"] == burst["MinValue"] == 1
        assert burst["MaxValue"] == 5_000, "API Gateway's limit of an account"
        assert rate["MaxValue"] == 10_000, "likewise"
        assert rate["Default"] <= burst["Default"]
        rates[route] = rate["Default"]
    assert rates["POST /recall-kit/submit_experience"] < rates[""]
    assert rates["POST /tool-server/tools/call"] < rates[""]


def test_concurrency_is_reserved_on_demand_for_anonymous_callers_authorizers_and_devices() -> None:
    reserved = {
        function_name(each): each["ReservedConcurrentExecutions"]
        for each in LAMBDAS.values()
        if "ReservedConcurrentExecutions" in each
    }
    names = ("AnonymousConcurrency", "AuthorizerConcurrency", "DeviceConcurrency")
    for name in names:
        assert (PARAMETERS[name]["Default"], PARAMETERS[name]["MinValue"]) == (0, 0)
    no_value = {"Ref": "AWS::NoValue"}
    by_parameter = {
        name: {
            each for each, value in reserved.items() if value == {"Fn::If": [f"With{name}", {"Ref": name}, no_value]}
        }
        for name in names
    }
    anonymous = {entry.function for entry in catalogue().methods.values() if entry.anonymous}
    assert anonymous
    assert by_parameter["AnonymousConcurrency"] == anonymous | {"endpoints-recall_kit_mcp", *BOARDS} | OAUTH
    assert by_parameter["AuthorizerConcurrency"] == {"endpoints-authorizer", "boards-authorizer"}
    assert by_parameter["DeviceConcurrency"] == {each.function for each in load().rules}


def test_bulk_embedding_has_a_bound_of_its_own() -> None:
    """However many instances index at once, the account's other concurrency is left to waiting callers."""
    reserved = {
        function_name(each)
        for each in LAMBDAS.values()
        if "BulkEmbeddingConcurrency" in json.dumps(each.get("ReservedConcurrentExecutions"))
    }
    assert reserved == {BULK_FUNCTION}
    assert PARAMETERS["BulkEmbeddingConcurrency"]["Default"] == 0  # a new account can reserve nothing
    assert "ReservedConcurrentExecutions" not in BY_NAME[URGENT_FUNCTION][1]
    assert "ProvisionedConcurrencyConfig" not in BY_NAME[BULK_FUNCTION][1]


def test_access_log_names_time_source_caller_and_authorizer_error() -> None:
    log = json.loads(RESOURCES["Api"]["Properties"]["AccessLogSettings"]["Format"])
    assert (
        log.items()
        >= {
            "time": "$context.requestTime",
            "source": "$context.identity.sourceIp",
            "caller": "$context.authorizer.sub",
            "tenant": "$context.authorizer.tenant_id",
            "authorizerError": "$context.authorizer.error",
            "error": "$context.integrationErrorMessage",
            "status": "$context.status",
            "route": "$context.routeKey",
        }.items()
    )
