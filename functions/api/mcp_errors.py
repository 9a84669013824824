"""Errors in MCP's format, by revision of the protocol."""

from typing import Any, Final

from api.error_formats import dialect_of
from api.mcp_sdk import (
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    KNOWN_PROTOCOL_VERSIONS,
    METHOD_NOT_FOUND,
    MODERN_PROTOCOL_VERSIONS,
    UNSUPPORTED_PROTOCOL_VERSION,
    MCPError,
)
from shared.rpc.errors import FieldProblem, InvalidParams, InvalidRequest, KhoError, NotFound, explanation
from shared.rpc.mcp_catalog import mcp_catalog
from shared.rpc.strict_json import encodable

REVISIONS: Final = ("2026-07-28", "2025-11-25", "2025-06-18")
"""The revisions that Kho promises to support; the SDK also accepts older ones."""

_RESERVED: Final = range(-32099, -31999)
"""Codes that JSON-RPC leaves to implementations, and that MCP reserves since 2026-07-28."""

_MAX_ECHOED: Final = 64


def is_handshake(revision: str) -> bool:
    """Return True for revisions with a handshake: 2025-11-25 and earlier."""
    return revision not in MODERN_PROTOCOL_VERSIONS


def protocol_error(error: KhoError, server: str, revision: str) -> MCPError:
    """Return `error` as a JSON-RPC error. Many clients show only its message."""
    return formatted_error(error_record(error, server), revision, not_found=isinstance(error, NotFound))


def error_record(error: KhoError, server: str = "") -> dict[str, Any]:
    """Return the JSON-RPC error object of `error` with a complete message."""
    message = explanation(error.message, error.details, error.guidance)
    return dialect_of(server).jsonrpc_error(error) | {"message": message}


def formatted_error(error: dict[str, Any], revision: str, *, not_found: bool) -> MCPError:
    """Return a JSON-RPC error with a code that the revision allows, and with the resource's URI if it names one."""
    code, data = error["code"], error["data"]
    if not_found and "uri" in data["details"]:
        data = data | {"uri": data["details"]["uri"]}
    if not is_handshake(revision):
        if not_found:
            code = INVALID_PARAMS
        elif code in _RESERVED:
            code = INTERNAL_ERROR
    return MCPError(code, error["message"], data)


def unknown_name(kind: str, name: str, field: str = "name") -> InvalidParams:
    """Build the error of a tool or prompt that does not exist."""
    message = f"'{encodable(name)}' is not a {kind}; {kind}s/list names them"
    return InvalidParams(FieldProblem(field=field, message=message))


_SDK_ERRORS: Final = {
    METHOD_NOT_FOUND: (
        "METHOD_NOT_FOUND",
        "This server has the methods of tools, resources, prompts and completion; tools/list names its tools.",
    ),
    INVALID_PARAMS: ("INVALID_PARAMS", "Send the parameters that this revision of MCP requires."),
    HEADER_MISMATCH: ("HEADER_MISMATCH", "Send the same revision, method and name in the headers and in the body."),
}


def with_data(error: dict[str, Any]) -> dict[str, Any]:
    """Return an error of the SDK with code, details and guidance in `data`, and any other error unchanged."""
    data = error.get("data")
    if isinstance(data, dict) and "guidance" in data:
        return error
    code, guidance = _SDK_ERRORS.get(error["code"], (InvalidRequest.code, InvalidRequest.advice))
    details = data if isinstance(data, dict) else {"reason": error["message"] if data is None else str(data)}
    members = data if isinstance(data, dict) else {}  # clients look for them where MCP's schema has them
    message = explanation(error["message"], {}, guidance)
    return error | {"message": message, "data": members | {"code": code, "details": details, "guidance": guidance}}


def unsupported_revision(requested: str) -> dict[str, Any] | None:
    """Return the error of a revision that does not exist, or None. Its `data` also has the members of MCP's schema."""
    if requested in KNOWN_PROTOCOL_VERSIONS:
        return None
    names = {"supported": list(REVISIONS), "requested": encodable(requested)[:_MAX_ECHOED]}
    data = {
        "code": "UNSUPPORTED_PROTOCOL_VERSION",
        "details": names,
        "guidance": "Send a supported revision in the header MCP-Protocol-Version.",
    }
    message = f"The protocol version '{names['requested']}' is not supported. Supported: {', '.join(REVISIONS)}."
    return {"code": UNSUPPORTED_PROTOCOL_VERSION, "message": message, "data": data | names}


def tool_failure(error: KhoError, server: str) -> dict[str, Any]:
    """Return the result of a tool that failed, in every revision. Most clients show a model only its text."""
    dialect = dialect_of(server)
    text = explanation(error.message, error.details, error.guidance)
    return failure_result(dialect.code(error), text, dialect.tool_facts(error))


def failure_result(code: str, text: str, facts: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a tool with the text and the facts of its failure."""
    content = [{"type": "text", "text": f"{code}: {text}"}]
    return {"content": content, "structuredContent": facts, "isError": True}


def with_tool_names(error: KhoError, server: str) -> KhoError:
    """Name the server's methods in the error's guidance as MCP clients know them: as tools."""
    for tool in mcp_catalog().of(f"{server}/").tools:
        method = tool.method.partition("/")[2]
        if "/" in method and not tool.by_name:
            error.guidance = error.guidance.replace(method, tool.name)
    return error
