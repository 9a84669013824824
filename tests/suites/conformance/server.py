"""Kho as `kho serve` runs it, with the suite's fixtures behind the MCP endpoint."""

from __future__ import annotations

import asyncio
import threading
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import uvicorn

from api.mcp_transport import McpTransport
from endpoints import mcp
from infra.local.functions import Functions
from infra.local.gateway import Gateway
from infra.local.http_server import http_settings
from infra.local.sockets import address_of, listen
from infra.local.template import load
from shared.platform.runtime import runtime
from shared.rpc.mcp_catalog import TOOLSETS, mcp_catalog
from tests.helpers.dynamodb import running_store
from tests.suites.conformance.fixtures import server_with_fixtures

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class WithFixtures(Functions):
    """The template's functions; the MCP endpoint has the fixtures too."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        catalogs = {name: mcp_catalog().of(*each.methods) for name, each in TOOLSETS.items()} | {"": mcp_catalog()}
        self._transports = {name: McpTransport(server_with_fixtures(each)) for name, each in catalogs.items()}

    def _import(self, name: str) -> Callable[[Any, Any], Any]:
        if name == "endpoints-mcp":
            return lambda event, _context: mcp.handle_message(event, self._transport_of(event))
        return super()._import(name)

    def _transport_of(self, event: dict[str, Any]) -> McpTransport:
        return self._transports[event.get("pathParameters", {}).get("toolset", "")]


@contextmanager
def serving() -> Iterator[str]:
    """Serve on a free port of loopback. Yield the address."""
    with ExitStack() as stack:
        stack.enter_context(running_store())
        template = load()
        functions = WithFixtures(template.functions)
        stack.callback(functions.close)
        runtime.functions = functions
        gateway = Gateway(template, functions, authorizing=False, access_log=lambda *_: None)
        stack.callback(gateway.close)
        listener = listen("127.0.0.1", 0)
        stack.callback(listener.close)
        server = uvicorn.Server(http_settings(gateway))
        thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])))
        thread.start()
        stack.callback(thread.join)
        stack.callback(setattr, server, "should_exit", True)
        yield address_of(listener)
