"""recall-kit's own example, and a caller for each of its endpoints."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mcp.client import Client as SdkClient

if TYPE_CHECKING:
    from tests.helpers.kho_server import KhoServer


Ask = Callable[..., Any]
"""A function that calls a method of `recall-kit/` at one of its endpoints."""
EXPERIENCE: dict[str, Any] = {
    "title": "React useState not updating state",
    "problem_description": "State variable not updating after setState call in React 18",
    "root_cause": "React 18's strict mode causes double rendering, and direct state updates may be batched incorrectly",
    "solution": "Use functional update form: setState(prev => prev + 1) instead of setState(count + 1)",
    "context": "React 18+ with strict mode enabled\n\nCode example:\nconst [count, setCount] = useState(0);\n"
    "setCount(count + 1); // Wrong\nsetCount(prev => prev + 1); // Correct",
    "keywords": ["react", "hooks", "state"],
}
REQUIRED = {name: EXPERIENCE[name] for name in ("title", "problem_description", "solution")}


def call_http(server: KhoServer, **headers: str) -> Ask:
    """Call a method's own route, and check that the status agrees with the body."""

    def ask(method: str, /, **params: Any) -> Any:
        response = server.post(f"/recall-kit/{method}", json.dumps(params).encode(), **headers)
        body = json.loads(response.data)
        assert body["success"] is (response.status == 200)
        return body

    return ask


def call_jsonrpc(server: KhoServer) -> Ask:
    """Call the JSON-RPC endpoint, which answers failures as results too."""

    def ask(method: str, /, **params: Any) -> Any:
        answer = server.rpc({"jsonrpc": "2.0", "method": f"recall-kit/{method}", "params": params, "id": 1})
        assert answer.keys() == {"jsonrpc", "result", "id"}, answer
        return answer["result"]

    return ask


def call_mcp(server: KhoServer, mode: str) -> Ask:
    """Call the public MCP endpoint."""

    def ask(method: str, /, **params: Any) -> Any:
        async def call() -> Any:
            async with SdkClient(f"{server.address}/mcp/recall-kit", mode=mode) as client:
                return await client.call_tool(method, params)

        result = asyncio.run(call())
        body = result.structured_content
        assert body["success"] is not bool(result.is_error)
        text = result.content[0].text
        if result.is_error:
            assert text.startswith(f"{body['error']['code']}: ")
            assert all(f"{each['field']}: " in text for each in body["error"].get("validation_errors", [])[:5])
        else:
            assert json.loads(text) == body
        return body

    return ask
