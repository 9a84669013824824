"""Gateway events of MCP clients, and the messages in the endpoint's answers."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pytest

from api.mcp_server import server_for_catalog
from api.mcp_transport import McpRequestContext, McpTransport
from infra.local.functions import Functions
from infra.local.template import load
from shared.platform.config import config
from shared.platform.runtime import runtime
from shared.rpc.mcp_catalog import mcp_catalog
from tests.helpers.wait import CEILING_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator

MODERN: Final = "2026-07-28"
HANDSHAKE: Final = ("2025-11-25", "2025-06-18")
REVISIONS: Final = (MODERN, *HANDSHAKE)
_NAMED: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


def event(body: Any, method: str = "POST", path: str = "/mcp", **headers: str) -> dict[str, Any]:
    """Return the gateway's event. Header names have '_' for '-'."""
    all_headers = {
        "host": "localhost:8001",
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
    } | {name.replace("_", "-"): value for name, value in headers.items()}
    return {
        "version": "2.0",
        "routeKey": f"{method} {path}",
        "rawPath": path,
        "rawQueryString": "",
        "headers": all_headers,
        "requestContext": {
            "http": {
                "method": method,
                "path": path,
                "protocol": "HTTP/1.1",
                "sourceIp": "127.0.0.1",
                "userAgent": "",
            },
            "requestId": "0123456789ab",
        },
        "isBase64Encoded": False,
        "body": body if isinstance(body, str) else json.dumps(body),
    }


def request_event(method: str, revision: str, **params: Any) -> dict[str, Any]:
    """Return the event of one request in `revision`."""
    headers = {"mcp_protocol_version": revision}
    if revision == MODERN:
        params["_meta"] = {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        headers["mcp_method"] = method
        if method in _NAMED:
            headers["mcp_name"] = params[_NAMED[method]]
    return event({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}, **headers)


def initialize_event(revision: str) -> dict[str, Any]:
    """Return a client's first event, if `revision` has a handshake."""
    params = {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    return event({"jsonrpc": "2.0", "id": 7, "method": "initialize", "params": params})


def response_message(answer: dict[str, Any]) -> Any:
    """Return the one message of an answer, sent as JSON or as a stream."""
    body: str = answer["body"]
    if answer["headers"]["content-type"].startswith("text/event-stream"):
        body = next(line for line in body.splitlines() if line.startswith("data: ")).removeprefix("data: ")
    return json.loads(body)


def answer_of_server(transport: McpTransport, asked: dict[str, Any], visit: McpRequestContext) -> Any:
    """Return the MCP server's response to an authenticated caller."""
    return response_message(transport.answer(asked, json.loads(asked["body"]), visit))


@contextmanager
def in_process_mcp_server() -> Iterator[McpTransport]:
    """Yield the MCP transport with its methods in this process. The web is unreachable."""
    functions = Functions({name: replace(each, timeout=CEILING_SECONDS) for name, each in load().functions.items()})
    transport = McpTransport(server_for_catalog(mcp_catalog()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runtime, "functions", functions)
        patch.setenv("KHO_SEARCH_PROXY", "http://127.0.0.1:9")
        config.cache_clear()
        yield transport
    config.cache_clear()
    transport.close()
    functions.close()
