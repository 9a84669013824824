"""The MCP endpoint: a message at handler level, and the import time, compared with others."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import subprocess
import sys
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from shared.platform.runtime import runtime
from shared.rpc.mcp_catalog import mcp_catalog
from tests.helpers.mcp_events import MODERN, initialize_event, request_event, response_message
from tests.suites.bench import tables as bench
from tests.suites.bench.size import sized

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS: Final = sized(1, full=40)
CALLS: Final = sized(1, full=5)
IMPORTS: Final = sized(1, full=5)
HANDSHAKE: Final = "2025-11-25"
TOOL: Final = "memory_add_message"
ARGUMENTS: Final = {"conversation_id": "chat_1", "role": "user", "content": "Răng của tôi đau khi uống nước lạnh. " * 5}
RESULT: Final = {"status": "success", "conversation_id": "chat_1"}
MESSAGES: Final = {
    "initialize": initialize_event(HANDSHAKE),
    "tools/list": request_event("tools/list", HANDSHAKE),
    "tools/call": request_event("tools/call", HANDSHAKE, name=TOOL, arguments=ARGUMENTS),
}
IMPORTED: Final = {
    "nothing but Python": "",
    "Kho, `endpoints.mcp`": "import endpoints.mcp",
    "the SDK's models alone, `mcp_types.methods`": "import mcp_types.methods",
    "FastMCP's `http_app` + Mangum": "import fastmcp, mangum; mangum.Mangum(fastmcp.FastMCP('x').http_app())",
    "awslabs `mcp-lambda-handler`": "import awslabs.mcp_lambda_handler",
}


def tables() -> list[bench.BenchTable]:
    """Measure both."""
    return [_handled(), _imported()]


def _handled() -> bench.BenchTable:
    os.environ["KHO_AUTH"] = "open"
    os.environ["POWERTOOLS_METRICS_DISABLED"] = "true"
    from endpoints import mcp

    logging.disable()
    runtime.functions = lambda _function, _payload: json.dumps({"result": RESULT}).encode()
    handlers: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
        "Kho": lambda event: mcp.handler(event, None),
        "FastMCP + Mangum": _fastmcp(),
        "awslabs": _awslabs(),
    }
    rows = []
    for method, event in MESSAGES.items():
        contenders = {name: partial(_repeat, handler, event) for name, handler in handlers.items()}
        for name, handler in handlers.items():
            assert "result" in response_message(handler(event)), (name, method)
        if method != "initialize":
            params = {} if method == "tools/list" else {"name": TOOL, "arguments": ARGUMENTS}
            contenders["Kho, 2026-07-28"] = partial(_repeat, handlers["Kho"], request_event(method, MODERN, **params))
        timings = {name: each.p50 / CALLS for name, each in bench.interleaved(contenders, ROUNDS).items()}
        newest = bench.ms(timings["Kho, 2026-07-28"]) if "Kho, 2026-07-28" in timings else "-"
        ratio = f"{timings['FastMCP + Mangum'] / timings['Kho']:.1f}"
        rows.append(
            [f"`{method}`", *(bench.ms(timings[name]) for name in handlers), ratio, newest],
        )
    logging.disable(logging.NOTSET)
    notes = [
        f"Warm medians, in-process, at {HANDSHAKE}; Kho at {MODERN} for comparison. Each lists the same",
        f"{len(mcp_catalog().tools)} tools with the same schemas; the call takes the same message and stores nothing.",
        "awslabs knows neither output schemas nor structured content, checks no arguments, and speaks no newer",
        "revision than 2024-11-05.",
    ]
    columns = ["message", *handlers, "FastMCP / Kho", f"Kho, {MODERN}"]
    return bench.BenchTable("MCP at handler level", columns, rows, notes)


def _imported() -> bench.BenchTable:
    samples: dict[str, list[float]] = {name: [] for name in IMPORTED}
    for _ in range(IMPORTS):
        for name, program in IMPORTED.items():
            started = time.perf_counter()
            subprocess.run([sys.executable, "-c", program], check=True)
            samples[name].append(time.perf_counter() - started)
    medians = {name: bench.Timing(each).p50 for name, each in samples.items()}
    (nothing, bare), *others = medians.items()
    rows = [[nothing, bench.ms(bare)], *([name, f"+{bench.ms(each - bare)}"] for name, each in others)]
    notes = [
        f"Medians of {IMPORTS} new processes each, interleaved. The SDK's models of the protocol are most of what the",
        "endpoint imports: every server on the SDK pays for them.",
    ]
    return bench.BenchTable("Importing an MCP endpoint", ["what", "time"], rows, notes)


def _fastmcp() -> Callable[[dict[str, Any]], dict[str, Any]]:
    """FastMCP with the same tools, its lifespan held as ours is: else it would fail at the second event."""
    from fastmcp import FastMCP
    from fastmcp.tools.base import Tool, ToolResult
    from mangum import Mangum

    class Same(Tool):
        async def run(self, arguments: dict[str, Any]) -> ToolResult:  # noqa: ARG002 - FastMCP's signature
            return ToolResult(structured_content=RESULT)

    server: FastMCP[Any] = FastMCP("bench", version="1")
    for each in mcp_catalog().tools:
        told = each.described
        server.add_tool(
            Same(
                name=told["name"],
                title=told["title"],
                description=told["description"],
                parameters=told["inputSchema"],
                output_schema=told.get("outputSchema"),
                annotations=told["annotations"],
            )
        )
    app = server.http_app(stateless_http=True, host_origin_protection=False)
    loop = asyncio.new_event_loop()

    async def hold(ready: asyncio.Event) -> None:
        async with app.router.lifespan_context(app):
            ready.set()
            await asyncio.Event().wait()

    ready = asyncio.Event()
    held = loop.create_task(hold(ready))
    loop.run_until_complete(ready.wait())
    asyncio.set_event_loop(loop)
    mangum: Any = Mangum(app, lifespan="off")

    def handle(event: dict[str, Any]) -> dict[str, Any]:
        assert not held.done()
        asyncio.set_event_loop(loop)
        answer: dict[str, Any] = mangum(event, None)
        return answer

    return handle


def _awslabs() -> Callable[[dict[str, Any]], dict[str, Any]]:
    from awslabs.mcp_lambda_handler import MCPLambdaHandler  # type: ignore[import-not-found]

    server = MCPLambdaHandler("bench", "1")
    server.tools = {
        each.name: {name: each.described[name] for name in ("name", "description", "inputSchema")}
        for each in mcp_catalog().tools
    }
    server.tool_implementations = dict.fromkeys(server.tools, lambda **_arguments: json.dumps(RESULT))

    def handle(event: dict[str, Any]) -> dict[str, Any]:
        answer: dict[str, Any] = server.handle_request(event | {"httpMethod": "POST"}, None)
        answer["headers"] = {name.lower(): value for name, value in answer["headers"].items()}
        return answer

    return handle


def _repeat(handler: Callable[[dict[str, Any]], dict[str, Any]], event: dict[str, Any]) -> None:
    for _ in range(CALLS):
        handler(event)
