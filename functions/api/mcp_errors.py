"""How the MCP doors say each named error, in each revision of the protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from api.error_formats import jsonrpc_error, recall_kit_body
from shared.rpc.errors import NotFound
from shared.rpc.strict_json import compact

if TYPE_CHECKING:
    from shared.rpc.errors import KhoError

_RESERVED: Final = range(-32099, -31999)
"""Codes that JSON-RPC leaves to implementations, and MCP since 2026-07-28 keeps for itself."""


def is_handshake(revision: str) -> bool:
    """Whether `revision` begins with a handshake: 2025-11-25 and those before."""
    return revision not in MODERN_PROTOCOL_VERSIONS


def protocol_error(error: KhoError, server: str, revision: str) -> MCPError:
    """`error` as a JSON-RPC error."""
    said = jsonrpc_error(error, server)
    data = said["data"]
    if isinstance(error, NotFound) and "uri" in error.details:
        data = data | {"uri": error.details["uri"]}
    code = said["code"]
    if not is_handshake(revision):
        if isinstance(error, NotFound):
            code = INVALID_PARAMS
        elif code in _RESERVED:
            code = INTERNAL_ERROR
    return MCPError(code, said["message"], data)


def tool_error(error: KhoError) -> dict[str, Any]:
    """`error` as the result of a tool, for the model to read and act on."""
    return {
        "content": [{"type": "text", "text": f"{error.name}: {error.message} {error.guidance}".strip()}],
        "structuredContent": {
            "code": error.name,
            "message": error.message,
            "details": error.details,
            "guidance": error.guidance,
        },
        "isError": True,
    }


def recall_kit_error(error: KhoError) -> dict[str, Any]:
    """`error` as the result of one of seed 003's tools, in every revision."""
    said = recall_kit_body(error)
    return {"content": [{"type": "text", "text": compact(said)}], "structuredContent": said, "isError": True}
