"""Errors in MCP's format, by revision of the protocol."""

from typing import Any, Final

from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from api.error_formats import RECALL_KIT, jsonrpc_error, recall_kit_body
from shared.rpc.errors import Conflict, KhoError, NotFound, OutOfTime, ToolFailed, Unavailable
from shared.rpc.strict_json import compact

_RESERVED: Final = range(-32099, -31999)
"""Codes that JSON-RPC leaves to implementations, and that MCP reserves since 2026-07-28."""

_DEVICE_SERVER: Final = "device-server"
_DEVICE_FAILURES: Final = (Conflict, OutOfTime, ToolFailed, Unavailable)


def is_handshake(revision: str) -> bool:
    """Return True for revisions with a handshake: 2025-11-25 and earlier."""
    return revision not in MODERN_PROTOCOL_VERSIONS


def protocol_error(error: KhoError, server: str, revision: str) -> MCPError:
    """Return `error` as a JSON-RPC error."""
    formatted = jsonrpc_error(error, server)
    data = formatted["data"]
    if isinstance(error, NotFound) and "uri" in error.details:
        data = data | {"uri": error.details["uri"]}
    code = formatted["code"]
    if not is_handshake(revision):
        if isinstance(error, NotFound):
            code = INVALID_PARAMS
        elif code in _RESERVED:
            code = INTERNAL_ERROR
    return MCPError(code, formatted["message"], data)


def tool_failure(error: KhoError, server: str, revision: str) -> dict[str, Any]:
    """Return the result of a tool that failed. Raise a protocol error where the revision's clients expect one.

    A failure of recall-kit or of a device is a result in every revision, for the model to read and act on.
    """
    facts, text = error.facts(), f"{error.code}: {error.message} {error.guidance}".strip()
    if server == RECALL_KIT:
        facts = recall_kit_body(error)
        text = compact(facts)
    elif is_handshake(revision) and not (server == _DEVICE_SERVER and isinstance(error, _DEVICE_FAILURES)):
        raise protocol_error(error, server, revision) from None
    return {"content": [{"type": "text", "text": text}], "structuredContent": facts, "isError": True}
