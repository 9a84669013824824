"""The parts of the official MCP SDK that endpoints use, loaded for a short start. Only this module imports the SDK.

The SDK's packages load its client and a second server, and its modules define models of every revision, of which one
call uses a few. Here a package runs its own code only if something asks for a name of it, and pydantic builds a model
at its first use. The garbage collector rests meanwhile, and never looks at what has been loaded: it stays.
"""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any, Final

from pydantic import BaseModel

_PACKAGES: Final = ("mcp", "mcp.server")


class _LazyPackage(ModuleType):
    """A package that runs its own code when something asks for a name which no loaded submodule has."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self.__class__ = ModuleType  # type: ignore[assignment]  # a module like any other from now on
        assert self.__spec__
        assert self.__spec__.loader
        self.__spec__.loader.exec_module(self)
        return getattr(self, name)


@contextmanager
def _short_start() -> Iterator[None]:
    """Load the SDK in this block."""
    for name in _PACKAGES:
        if name not in sys.modules:
            _add_lazily(name)
    BaseModel.model_config["defer_build"] = True
    gc.disable()
    try:
        yield
    finally:
        del BaseModel.model_config["defer_build"]
        gc.freeze()
        gc.enable()


def _add_lazily(name: str) -> None:
    spec = find_spec(name)
    assert spec
    package = module_from_spec(spec)
    package.__class__ = _LazyPackage
    parent, _, last = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], last, package)
    sys.modules[name] = package


with _short_start():
    from mcp.server.caching import CacheableMethod, CacheHint
    from mcp.server.connection import Connection
    from mcp.server.context import CallNext, HandlerResult, ServerMiddleware, ServerRequestContext
    from mcp.server.lowlevel.server import Server
    from mcp.server.runner import serve_one
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from mcp.shared.dispatcher import CallOptions
    from mcp.shared.exceptions import MCPError, NoBackChannelError
    from mcp.shared.jsonrpc_dispatcher import progress_token_from_params
    from mcp.shared.message import ServerMessageMetadata
    from mcp.shared.transport_context import TransportContext
    from mcp_types import (
        DEFAULT_NEGOTIATED_VERSION,
        INTERNAL_ERROR,
        INVALID_PARAMS,
        METHOD_NOT_FOUND,
        UNSUPPORTED_PROTOCOL_VERSION,
        CallToolRequestParams,
        CompleteRequestParams,
        DiscoverResult,
        GetPromptRequestParams,
        PaginatedRequestParams,
        ProgressToken,
        PromptReference,
        ReadResourceRequestParams,
        RequestId,
        RequestParams,
    )
    from mcp_types.jsonrpc import HEADER_MISMATCH, JSONRPCMessage, jsonrpc_message_adapter
    from mcp_types.version import KNOWN_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

__all__ = [
    "DEFAULT_NEGOTIATED_VERSION",
    "HEADER_MISMATCH",
    "INTERNAL_ERROR",
    "INVALID_PARAMS",
    "KNOWN_PROTOCOL_VERSIONS",
    "METHOD_NOT_FOUND",
    "MODERN_PROTOCOL_VERSIONS",
    "UNSUPPORTED_PROTOCOL_VERSION",
    "CacheHint",
    "CacheableMethod",
    "CallNext",
    "CallOptions",
    "CallToolRequestParams",
    "CompleteRequestParams",
    "Connection",
    "DiscoverResult",
    "GetPromptRequestParams",
    "HandlerResult",
    "JSONRPCMessage",
    "MCPError",
    "NoBackChannelError",
    "PaginatedRequestParams",
    "ProgressToken",
    "PromptReference",
    "ReadResourceRequestParams",
    "RequestId",
    "RequestParams",
    "Server",
    "ServerMessageMetadata",
    "ServerMiddleware",
    "ServerRequestContext",
    "StreamableHTTPSessionManager",
    "TransportContext",
    "jsonrpc_message_adapter",
    "progress_token_from_params",
    "serve_one",
]
