"""Public routes, throttling of each route, and requests that clients may send to the endpoints."""

from __future__ import annotations

from endpoints.resource_metadata import MCP, WELL_KNOWN
from infra.local.template import load
from tests.helpers.template import RESOURCES


def test_mcp_routes_cover_all_http_methods() -> None:
    routes = {(route.method, route.path) for route in load().routes if route.function == "endpoints-mcp"}
    assert routes == {("POST", "/mcp"), ("GET", "/mcp"), ("DELETE", "/mcp")}
    open_to_all = {
        (route.method, route.path) for route in load().routes if route.function == "endpoints-recall_kit_mcp"
    }
    assert open_to_all == {(method, "/mcp/recall-kit") for method in ("POST", "GET", "DELETE")}
    of_devices = {(route.method, route.path) for route in load().routes if route.function == "endpoints-device_mcp"}
    assert of_devices == {(method, "/mcp/devices/{device_id}") for method in ("POST", "GET", "DELETE")}
    paths = {route.path for route in load().routes if route.function == "endpoints-resource_metadata"}
    assert paths == {WELL_KNOWN, WELL_KNOWN + MCP}


def test_only_public_routes_have_no_authorizer() -> None:
    """All others are behind the gateway's authorizer or verify credentials in the function."""
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


def test_every_route_is_throttled_by_cost() -> None:
    stage = RESOURCES["Api"]["Properties"]
    usual, own = stage["DefaultRouteSettings"], stage["RouteSettings"]
    routes = {route.key for route in load().routes}
    assert own.keys() <= routes
    for settings in (usual, *own.values()):
        assert 0 < settings["ThrottlingRateLimit"] <= settings["ThrottlingBurstLimit"]
    assert own["POST /recall-kit/submit_experience"]["ThrottlingRateLimit"] < usual["ThrottlingRateLimit"]
    assert own["POST /tool-server/tools/call"]["ThrottlingRateLimit"] < usual["ThrottlingRateLimit"]
