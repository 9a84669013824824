"""The OpenAPI document as a tool server: a generic client makes tools from it and calls every method."""

from __future__ import annotations

import asyncio
import json
import re
from typing import TYPE_CHECKING, Any

import httpx2
import jsonschema_rs
import pytest
from fastmcp import Client, FastMCP
from fastmcp.exceptions import ToolError

from shared.rpc.catalogue import catalogue
from tests.events import event
from tests.helpers.wait import CEILING_SECONDS

if TYPE_CHECKING:
    from tests.helpers.kho_server import KhoServer

METHODS = catalogue().methods
PREPARATION: list[tuple[str, dict[str, Any]]] = [
    ("agent-data/create_document", {"document_id": "guide", "parent_id": "root", "content": {"body": "Ferns."}}),
    ("memory-server/memory/add_message", {"conversation_id": "chat_garden", "role": "user", "content": "Hello"}),
    ("research-agent/manage_collections", {"action": "create", "collection_name": "garden"}),
]
"""Data that many of the sample requests name. The others get the documented answer that there is nothing."""


@pytest.fixture(scope="module")
def document(server: KhoServer) -> dict[str, Any]:
    """Return the OpenAPI document of a server that has some data."""
    for method, params in PREPARATION:
        server.rpc({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    read: dict[str, Any] = json.loads(server.get("/openapi.json").data)
    return read


def test_document_is_plain_for_generators(server: KhoServer, document: dict[str, Any]) -> None:
    """Widespread generators fail on lists of types, arrays without items, object defaults, names of other classes."""
    problems: list[str] = []

    def check(node: Any, path: str) -> None:
        if isinstance(node, dict):
            if isinstance(node.get("type"), list):
                problems.append(f"{path}: a list of types")
            if node.get("type") == "array" and "items" not in node:
                problems.append(f"{path}: an array without items")
            if "anyOf" in node and isinstance(node.get("default"), dict):
                problems.append(f"{path}: an object as a default")
        for name, value in (
            node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
        ):
            check(value, f"{path}/{name}")

    check(document, "")
    assert not problems
    names = {name.lower() for name in document["components"]["schemas"]}
    ids = {each["operationId"] for item in document["paths"].values() for each in item.values()}
    assert not {"request", "response", "message", "error"} & names
    assert not {f"{each}{kind}".lower() for each in ids for kind in ("request", "response")} & names
    assert not [path for path in document["paths"] if path.endswith("/")]
    assert document["servers"] == [{"url": server.address}]
    tags = {each["name"] for each in document["tags"]}
    operations = [operation for item in document["paths"].values() for operation in item.values()]
    assert {tag for operation in operations for tag in operation["tags"]} == tags
    assert all(operation["description"] for operation in operations)
    firmware = document["paths"]["/device-server/firmware/list"]["post"]
    assert firmware["requestBody"]["required"] is False


def sample(method: str) -> dict[str, Any]:
    params: dict[str, Any] = json.loads(json.loads(event(METHODS[method].function))["body"])
    return params


def test_generic_client_calls_every_method(server: KhoServer, document: dict[str, Any]) -> None:
    async def use() -> dict[str, Any]:
        async with httpx2.AsyncClient(base_url=server.address, timeout=CEILING_SECONDS) as http:
            tools = FastMCP.from_openapi(document, http, validate_output=True)
            outcomes: dict[str, Any] = {}
            async with Client(tools) as client:
                names = {tool.name for tool in await client.list_tools()}
                for method in METHODS:
                    name = re.sub(r"\W", "_", method)
                    assert name in names
                    try:
                        result = await client.call_tool(name, sample(method))
                        outcomes[method] = result.structured_content
                    except ToolError as refused:
                        outcomes[method] = str(refused)
            return outcomes

    outcomes = asyncio.run(use())
    assert outcomes.keys() == METHODS.keys()
    succeeded = {method for method, outcome in outcomes.items() if not isinstance(outcome, str)}
    for method, outcome in outcomes.items():
        if method not in succeeded:
            (status,) = re.findall(r"HTTP error (\d+)", outcome)
            assert status in document["paths"][f"/{method}"]["post"]["responses"], (method, outcome)
            assert int(status) in (404, 409, 502, 503), (method, outcome)
    assert {method.partition("/")[0] for method in succeeded} == {method.partition("/")[0] for method in METHODS}


def test_absent_body_means_no_parameters(server: KhoServer) -> None:
    address = f"{server.address}/tool-server/tools/list"
    assert server.http.request("POST", address).status == 200
    from_a_page = server.http.request("POST", address, headers={"origin": "http://evil.example"})
    assert from_a_page.status in (400, 403)
    untyped = server.http.request("POST", address, body=b"{}", headers={"content-type": "text/plain"})
    assert untyped.status == 400


def test_every_method_is_a_tool_for_open_webui(document: dict[str, Any]) -> None:
    """It takes operationId as the name, the description, and an inline object of parameters from the JSON body."""
    names = []
    for method, entry in METHODS.items():
        operation = document["paths"][f"/{method}"]["post"]
        names.append(operation["operationId"])
        assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", operation["operationId"])
        assert operation.get("description") or operation["summary"]
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        assert schema["type"] == "object"
        assert "$ref" not in json.dumps(schema)
        assert set(schema.get("properties", {})) == set(entry.fields)
        jsonschema_rs.validator_for(schema).validate(sample(method))
    assert len(set(names)) == len(METHODS)
    assert document["info"]["title"]
    assert document["components"]["securitySchemes"]["key"] == {"type": "http", "scheme": "bearer"}
