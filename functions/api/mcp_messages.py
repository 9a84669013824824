"""One message of MCP: what makes it invalid at every endpoint and over STDIO, and the answer to one that is."""

from typing import Any, Final

from pydantic import ValidationError

from api.jsonrpc_requests import MAX_ID_CHARACTERS, principal_problem
from api.mcp_sdk import JSONRPCMessage, jsonrpc_message_adapter
from shared.rpc.errors import InvalidRequest
from shared.rpc.strict_json import is_encodable
from shared.rpc.unknown_fields import MAX_VALUES, crowded_field, many_unknown_fields

_MAX_UNKNOWN: Final = 1000
"""Unknown members of a message, which the SDK ignores."""
_MEMBERS: Final = ("jsonrpc", "id", "method", "params", "result", "error")
_PARAMS: Final = ("name", "arguments", "uri", "cursor", "_meta", "protocolVersion", "capabilities", "clientInfo")


def require_one_message(message: Any) -> JSONRPCMessage:
    """Return the message for the SDK. Raise InvalidRequest if it is not one."""
    if isinstance(message, list):
        raise InvalidRequest(details={"reason": "MCP has no batches: send one message a request"})
    if isinstance(message, dict):
        for member, known in ((message, _MEMBERS), (message.get("params"), _PARAMS)):
            problem = many_unknown_fields(member, known, _MAX_UNKNOWN) if isinstance(member, dict) else None
            if problem:
                raise InvalidRequest(details={"reason": f"the message {problem}"})
        if crowded_field(without_arguments(message)) is not None:
            raise InvalidRequest(details={"reason": f"the message holds more than {MAX_VALUES:,} values"})
    if isinstance(message, dict) and not _is_id(message.get("id", "")):
        raise InvalidRequest(
            details={"reason": f"'id' must be a string of at most {MAX_ID_CHARACTERS} characters or a whole number"}
        )
    if isinstance(message, dict) and not isinstance(message.get("params", {}), dict):
        raise InvalidRequest(details={"reason": "'params' must be an object"})
    if problem := principal_problem(message):
        raise InvalidRequest(details={"reason": problem})
    try:
        return jsonrpc_message_adapter.validate_python(message, by_name=False)
    except ValidationError:
        raise InvalidRequest(details={"reason": "it is not one JSON-RPC message"}) from None


def without_arguments(message: dict[str, Any]) -> dict[str, Any]:
    """Return the message without the arguments of a tool call, which are refused in the format of its revision."""
    params = message.get("params")
    if message.get("method") != "tools/call" or not isinstance(params, dict):
        return message
    arguments = params.get("arguments")
    return message | {"params": params | {"arguments": {}}} if isinstance(arguments, dict) else message


def refusal(message: Any, error: dict[str, Any]) -> dict[str, Any]:
    """Return the response with an error to a message that may have no valid id."""
    id_ = message.get("id") if isinstance(message, dict) else None
    return {"jsonrpc": "2.0", "id": id_ if _is_id(id_) and is_encodable(id_) else None, "error": error}


def _is_id(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= MAX_ID_CHARACTERS
    return isinstance(value, int) and not isinstance(value, bool)
