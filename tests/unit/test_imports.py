"""Budgets of imports: a cold start pays for each module that a function loads."""

from __future__ import annotations

from typing import Final

from infra.deploy.function_resources import PACKAGES
from infra.local.template import load
from tests.helpers.import_closure import import_closures

BUDGETS: Final = {
    "agent_data": 61,
    "agent_data.edit_document": 63,
    "agent_data.query_knowledge": 86,
    "boards": 57,
    "device_server": 55,
    "device_server.devices_alert": 68,
    "device_server.devices_list": 47,
    "device_server.tools_call": 69,
    "device_server.tools_list": 69,
    "discovery": 20,
    "discovery.openapi": 31,
    "endpoints": 43,
    "endpoints.actions": 25,
    "endpoints.authorizer": 33,
    "endpoints.jsonrpc": 24,
    "memory_server": 44,
    "oauth": 57,
    "oauth.metadata": 27,
    "oauth.resource_metadata": 28,
    "recall_kit": 45,
    "research_agent": 77,
    "research_agent.get_ingestion": 48,
    "research_agent.manage_projects": 45,
    "tool_server": 34,
    "tool_server.fetch": 93,
    "tool_server.search": 93,
    "workers": 45,
    "workers.device_inbox": 62,
    "workers.device_presence": 60,
    "workers.embed_bulk_texts": 31,
    "workers.embed_texts": 31,
    "workers.index_documents": 50,
    "workers.index_knowledge": 64,
    "workers.ingest": 68,
}
"""The most modules of Kho that a function may load, packages included. A server's is that of its other functions."""
PACKAGE_BUDGET: Final = 18
"""The most modules of Kho that a package loads without any of its functions: no store and no index."""
LAZY_LIBRARIES: Final = {"boto3", "httpx2", "lxml", "numpy", "onnx", "onnxruntime", "qdrant_client", "qdrant_edge"}
"""Libraries that functions load when they use them. MCP's client and its `MCPServer` load `httpx2`."""
EMBEDDING: Final = {"workers.embed_texts", "workers.embed_bulk_texts"}
"""Every call of these uses the model, so they load its libraries at the start."""


def test_functions_load_no_more_than_their_budget() -> None:
    functions = [each.handler.rpartition(".")[0] for each in load().functions.values()]
    closures = import_closures(*PACKAGES, *functions)
    budgets = {name: BUDGETS.get(name) or BUDGETS[name.partition(".")[0]] for name in functions}
    budgets |= dict.fromkeys(PACKAGES, PACKAGE_BUDGET)
    loaded = {name: own for name, (own, _) in closures.items()}
    over = {
        name: f"{len(own)} of {budgets[name]}: {sorted(own)}"
        for name, own in loaded.items()
        if len(own) > budgets[name]
    }
    assert not over, "import what only some calls need where it is used, or raise the budget with a reason"
    assert {name for name, (_, libraries) in closures.items() if libraries & LAZY_LIBRARIES} == EMBEDDING
    assert not BUDGETS.keys() - closures.keys(), "a budget is that of no function"
