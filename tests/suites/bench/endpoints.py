"""Endpoints: the cost that each adds to a method, and a function's import time, next to other frameworks."""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from api.handler import method
from endpoints import jsonrpc
from memory_server.add_message import AddMessageParams
from shared.memory.models import ConversationResult
from shared.platform.runtime import runtime
from shared.rpc.caller import Caller  # noqa: TC001 - read at run time
from shared.rpc.catalogue import MethodEntry, catalogue
from tests.helpers.kho_server import KhoServer
from tests.suites.bench import tables as bench
from tests.suites.bench.size import sized

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROUNDS: Final = sized(2, full=300)
CALLS: Final = sized(1, full=50)
IMPORTS: Final = sized(1, full=11)
MESSAGE: Final = {"conversation_id": "chat_1", "role": "user", "content": "Răng của tôi đau khi uống nước lạnh. " * 5}

_DEPLOYED: Final = "import sys; sys.modules['awscrt'] = None; "
IMPORTED: Final = {
    "nothing but Python": "",
    "Kho, `memory_server.add_message`": "import memory_server.add_message",
    "Kho, `tool_server.tools_call`": "import tool_server.tools_call",
    "Kho, `endpoints.jsonrpc`": "import endpoints.jsonrpc",
    "FastAPI + Mangum": "import fastapi, mangum; app = fastapi.FastAPI(); handler = mangum.Mangum(app)",
    "awslabs `mcp-lambda-handler`": "from awslabs.mcp_lambda_handler import MCPLambdaHandler",
}


def tables() -> list[bench.BenchTable]:
    """Measure through a running server, at handler level, and at import."""
    return [_served(), _handled(), _imported()]


@method("bench/memory/add_message", role="writer")
def handler(params: AddMessageParams, _caller: Caller) -> ConversationResult:
    """Take a message and do nothing: the rest is the endpoint's own work."""
    return ConversationResult("success", params.conversation_id)


def _served() -> bench.BenchTable:
    """Over HTTP, on one machine."""
    with (
        tempfile.TemporaryDirectory(prefix="kho-bench-") as folder,
        KhoServer(Path(folder) / "data", measured=True) as server,
    ):

        def through(path: str, body: dict[str, Any]) -> None:
            assert server.post(path, json.dumps(body).encode()).status == 200

        name = "tool-server/tools/list"
        single = {"jsonrpc": "2.0", "method": name, "params": {}, "id": 1}
        endpoints: dict[str, Callable[[], object]] = {
            "GET `/health`": lambda: server.get("/health"),
            "its own route": partial(through, f"/{name}", {}),
            "`/jsonrpc`": partial(through, "/jsonrpc", single),
        }
        timings = bench.interleaved(endpoints, ROUNDS)
    rows = [[endpoint, bench.ms(each.p50), bench.ms(each.p99)] for endpoint, each in timings.items()]
    note = "`tool-server/tools/list`, which needs no store, through `kho serve` on one kept connection."
    return bench.BenchTable("Endpoints over HTTP on one machine", ["endpoint", "p50", "p99"], rows, [note])


def _handled() -> bench.BenchTable:
    """At handler level: the gateway's event in, its answer out."""
    os.environ["KHO_AUTH"] = "open"
    called = MethodEntry(handler.method.name, "bench", "", "writer", {"properties": {}}, {}, [])
    catalogue().methods[called.name] = called
    runtime.functions = lambda _function, payload: json.dumps(handler(json.loads(payload), None)).encode()
    rpc = {"jsonrpc": "2.0", "method": called.name, "params": MESSAGE, "id": 1}
    contenders: dict[str, Callable[[], Any]] = {
        "Kho, its own route": partial(handler, _event("/bench/memory/add_message", MESSAGE), None),
        "Kho, `/jsonrpc`": partial(jsonrpc.handler, _event("/jsonrpc", rpc), None),
        "FastAPI + Mangum": _fastapi(),
        "awslabs `mcp-lambda-handler`": _awslabs(),
    }
    with _output_thrown_away():
        for name, call in contenders.items():
            answer = call()
            assert answer["statusCode"] == 200, (name, answer)
            assert "chat_1" in answer["body"], (name, answer)
        timings = bench.interleaved({name: partial(_repeat, call) for name, call in contenders.items()}, ROUNDS)
    rows = [[name, bench.ms(each.p50 / CALLS), bench.ms(each.p99 / CALLS)] for name, each in timings.items()]
    notes = [
        "One `add_message` that stores nothing, warm, in-process: reading, checking and answering. Ours log each call",
        "and count it in metrics, the others do neither. `/jsonrpc` reaches the method through the seam, as JSON and",
        "back; deployed, Lambda's own invocation comes on top.",
    ]
    return bench.BenchTable("Endpoints at handler level", ["endpoint", "p50 a call", "p99 a call"], rows, notes)


def _imported() -> bench.BenchTable:
    """Measure the imports of a cold start."""
    samples: dict[str, list[float]] = {name: [] for name in IMPORTED}
    for _ in range(IMPORTS):
        for name, program in IMPORTED.items():
            started = _children_seconds()
            subprocess.run([sys.executable, "-c", f"{_DEPLOYED}{program}"], check=True)
            samples[name].append(_children_seconds() - started)
    medians = {name: statistics.median(each) for name, each in samples.items()}
    (nothing, bare), *others = medians.items()
    rows = [[nothing, bench.ms(bare)], *([name, f"+{bench.ms(each - bare)}"] for name, each in others)]
    notes = [
        f"Medians of {IMPORTS} new processes each, interleaved; awscrt, which botocore imports where it can, left out",
        "for all: of the functions' layers, only that of the devices' functions has it. Ours brings what it stores a",
        "message by, the others nothing that could.",
    ]
    return bench.BenchTable("Importing a function", ["what", "processor time"], rows, notes)


def _children_seconds() -> float:
    """Return the CPU time of all ended processes, which is more reliable than the clock on a busy machine."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _fastapi() -> Callable[[], Any]:
    from fastapi import FastAPI  # type: ignore[import-not-found]
    from mangum import Mangum

    app = FastAPI()

    @app.post("/bench/memory/add_message")  # type: ignore[untyped-decorator]
    def add_message(message: AddMessageParams) -> ConversationResult:
        return ConversationResult("success", message.conversation_id)

    add_message.__annotations__ |= {"message": AddMessageParams, "return": ConversationResult}
    mangum: Any = Mangum(app, lifespan="off")
    return partial(mangum, _event("/bench/memory/add_message", MESSAGE), None)


def _awslabs() -> Callable[[], Any]:
    from awslabs.mcp_lambda_handler import MCPLambdaHandler  # type: ignore[import-not-found]

    server = MCPLambdaHandler("bench", "1")

    def add_message(conversation_id: str, role: str, content: str) -> str:
        """Take a message."""
        return json.dumps({"status": "success", "conversation_id": conversation_id})

    server.tool()(add_message)
    (name,) = server.tools
    params = {"name": name, "arguments": MESSAGE}
    body = {"jsonrpc": "2.0", "method": "tools/call", "params": params, "id": 1}
    event = _event("/mcp", body) | {"httpMethod": "POST"}
    return partial(server.handle_request, event, None)


def _repeat(call: Callable[[], Any]) -> None:
    for _ in range(CALLS):
        call()


def _event(path: str, body: dict[str, Any]) -> dict[str, Any]:
    """Build the gateway's event, payload format 2.0."""
    return {
        "version": "2.0",
        "routeKey": f"POST {path}",
        "rawPath": path,
        "rawQueryString": "",
        "headers": {"host": "api.example", "content-type": "application/json", "user-agent": "bench"},
        "requestContext": {
            "accountId": "0",
            "apiId": "a",
            "domainName": "api.example",
            "http": {
                "method": "POST",
                "path": path,
                "protocol": "HTTP/1.1",
                "sourceIp": "192.0.2.1",
                "userAgent": "bench",
            },
            "requestId": "JKJaXmPLvHcESHA=",
            "routeKey": f"POST {path}",
            "stage": "$default",
            "time": "12/Mar/2026:19:03:58 +0000",
            "timeEpoch": 1773342238000,
        },
        "body": json.dumps(body, ensure_ascii=False),
        "isBase64Encoded": False,
    }


@contextmanager
def _output_thrown_away() -> Iterator[None]:
    """Write logs and metrics, as on Lambda, to a file that is discarded."""
    sys.stdout.flush()
    kept = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)
