"""Headers that every answer has, at every endpoint."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.helpers.kho_server import KhoServer

JSON = {"content-type": "application/json"}
ANSWERS = [
    ("GET", "/health", None, 200),
    ("GET", "/servers/missing/capabilities", None, 404),
    ("POST", "/memory-server/memory/get_or_create", {}, 200),
    ("POST", "/memory-server/memory/get_context", {"conversation_id": "never created"}, 400),
    ("POST", "/memory-server/memory/get_context", {"conversation_id": "never-created"}, 404),
    ("POST", "/agent-data/get_document", {"document_id": "never-created"}, 404),
    ("POST", "/actions", {"action": "unknown", "payload": {}}, 404),
    ("POST", "/jsonrpc", {"jsonrpc": "2.0", "id": 1, "method": "unknown"}, 200),
    ("POST", "/recall-kit/query_experiences", {}, 400),
    ("POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "ping"}, 200),
    ("GET", "/mcp", None, 405),
]


@pytest.mark.parametrize(("method", "path", "body", "status"), ANSWERS)
def test_every_answer_has_a_correlation_id(server: KhoServer, method: str, path: str, body: Any, status: int) -> None:
    """A caller's correlation id is repeated, another is made without one."""
    sent = None if body is None else json.dumps(body).encode()
    response = server.http.request(
        method, f"{server.address}{path}", body=sent, headers=JSON | {"x-correlation-id": "mine-0123456789"}
    )
    assert (response.status, response.headers["x-correlation-id"]) == (status, "mine-0123456789"), response.data
    response = server.http.request(method, f"{server.address}{path}", body=sent, headers=JSON)
    assert len(response.headers["x-correlation-id"]) >= 8


def test_times_are_iso_8601_in_utc(server: KhoServer) -> None:
    document = {"mime_type": "text/plain", "body": "x"}
    writes: list[tuple[str, dict[str, Any]]] = [
        ("agent-data/create_document", {"document_id": "times", "parent_id": "root", "metadata": {"title": "T"}}),
        ("agent-data/document_history", {"document_id": "times"}),
        ("memory-server/memory/get_or_create", {"conversation_id": "times"}),
        ("memory-server/resources/list", {}),
        ("research-agent/manage_collections", {"action": "create", "collection_name": "times"}),
        ("research-agent/manage_projects", {"action": "create", "project_name": "times"}),
    ]
    writes[0][1]["content"] = document
    for method, params in writes:
        times = re.findall(r'"(?:\w+_at|at|timestamp)": ?"([^"]*)"', json.dumps(server.call(method, **params)))
        for each in times:
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", each), (method, each)
        assert times or method.startswith("memory-server"), method
