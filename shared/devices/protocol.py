"""Messages of the device protocol: the envelope, the JSON-RPC inside it, and a tolerant parser of device messages."""

import re
from dataclasses import dataclass
from typing import Any, Final, Literal

from shared.rpc.errors import ParseError
from shared.rpc.strict_json import compact, encodable, is_encodable, parse

MAX_MESSAGE_BYTES: Final = 128 * 1024
"""IoT Core's maximum message size."""
LARGEST_ID: Final = 2**31 - 1
"""Firmware truncates ids to 32 bits."""

METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603

_MAX_METHOD: Final = 256
_MAX_ERROR_CHARACTERS: Final = 2000
_ARGUMENT_ERRORS: Final = ("argument", "missing name", "value is below minimum", "value exceeds maximum")
_ID: Final = re.compile(r'"id"\s*:\s*(\d{1,10})\s*[,}]')
_OUTCOME: Final = re.compile(r'"(?:error|result)"\s*:')
_ERROR: Final = re.compile(
    r'"error"\s*:\s*\{\s*(?:"code"\s*:\s*(-?\d{1,10})\s*,\s*)?"message"\s*:\s*"(.*)"\s*\}\s*\}\s*\}\s*$', re.DOTALL
)


@dataclass(frozen=True, slots=True)
class RpcReply:
    """The result of a request."""

    id: int
    result: Any


@dataclass(frozen=True, slots=True)
class RpcFailure:
    """The device's own error, its code filled in where the device gave none."""

    id: int
    code: int
    message: str


@dataclass(frozen=True, slots=True)
class UnreadableReply:
    """A reply of which only the id can be read."""

    id: int


@dataclass(frozen=True, slots=True)
class DeviceNotification:
    """A notification from a device."""

    method: str
    params: dict[str, Any] | list[Any]


@dataclass(frozen=True, slots=True)
class Hello:
    """The message with which a device opens an audio channel."""

    transport: str
    mcp: bool


@dataclass(frozen=True, slots=True)
class InvalidMessage:
    """A message that fits none of the other types."""

    kind: Literal["oversize", "malformed", "unknown", "unasked"]


DeviceMessage = RpcReply | RpcFailure | UnreadableReply | DeviceNotification | Hello | InvalidMessage


def request(session_id: str, request_id: int, method: str, params: dict[str, Any]) -> bytes:
    """Return a request in its envelope."""
    payload = {"jsonrpc": "2.0", "method": method, "params": params, "id": request_id}
    return compact({"session_id": session_id, "type": "mcp", "payload": payload}).encode("utf-8")


def hello(session_id: str, transport: str, udp: dict[str, Any] | None) -> bytes:
    """Return the reply to a device's hello."""
    reply: dict[str, Any] = {"type": "hello", "transport": transport, "session_id": session_id}
    return compact(reply | ({"udp": udp} if udp else {})).encode("utf-8")


def goodbye(session_id: str) -> bytes:
    """Return the message that closes a device's audio channel."""
    return compact({"type": "goodbye", "session_id": session_id}).encode("utf-8")


def alert(status: str, message: str, emotion: str) -> bytes:
    """Return the message that a device shows, with a sound. Firmware ignores it without one of the three texts."""
    return compact({"type": "alert", "status": status, "message": message, "emotion": emotion}).encode("utf-8")


def parse_message(raw: bytes) -> DeviceMessage:
    """Parse a device's message."""
    if len(raw) > MAX_MESSAGE_BYTES:
        return InvalidMessage("oversize")
    try:
        message = parse(raw)
    except ParseError:
        return _parse_invalid_json(raw.decode("utf-8", "replace"))
    if not isinstance(message, dict):
        return InvalidMessage("malformed")
    # Lone surrogates come only from escapes.
    if b"\\u" in raw and not is_encodable(message):
        return _parse_invalid_json(raw.decode("utf-8", "replace"), complete=False)
    if message.get("type") == "hello":
        return _hello(message)
    payload = message.get("payload")
    if message.get("type") != "mcp" or not isinstance(payload, dict):
        return InvalidMessage("unknown")
    return _payload(payload)


def error_code(message: str) -> int:
    """Return a JSON-RPC code for a device error that has none."""
    text = message.lower()
    if text.startswith(("unknown tool", "method not implemented")):
        return METHOD_NOT_FOUND
    return INVALID_PARAMS if any(each in text for each in _ARGUMENT_ERRORS) else INTERNAL_ERROR


def _hello(message: dict[str, Any]) -> DeviceMessage:
    features, transport = message.get("features"), message.get("transport")
    if not isinstance(features, dict) or not isinstance(transport, str) or len(transport) > _MAX_METHOD:
        return InvalidMessage("malformed")
    return Hello(transport, mcp=features.get("mcp") is True)


def _payload(payload: dict[str, Any]) -> DeviceMessage:
    method = payload.get("method")
    if isinstance(method, str) and "id" not in payload:
        params = payload.get("params", {})
        if not 0 < len(method) <= _MAX_METHOD or not isinstance(params, dict | list):
            return InvalidMessage("malformed")
        return DeviceNotification(method, params)
    request_id = _request_id(payload.get("id"))
    if request_id is None or method is not None:
        return InvalidMessage("unasked" if payload.get("id") is not None else "unknown")
    if "error" in payload:
        return _failure(request_id, payload["error"])
    return RpcReply(request_id, payload["result"]) if "result" in payload else UnreadableReply(request_id)


def _request_id(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
        return None
    return int(value) if 0 < value <= LARGEST_ID else None


def _failure(request_id: int, error: Any) -> DeviceMessage:
    message, code = (error.get("message"), error.get("code")) if isinstance(error, dict) else (error, None)
    if not isinstance(message, str):
        return UnreadableReply(request_id)
    if not isinstance(code, int) or isinstance(code, bool) or abs(code) > LARGEST_ID:
        code = error_code(message)
    return RpcFailure(request_id, code, message[:_MAX_ERROR_CHARACTERS])


def _parse_invalid_json(text: str, *, complete: bool = True) -> DeviceMessage:
    """Parse invalid JSON: an error whose message was not escaped, or a truncated reply."""
    _, has_payload, payload = text.partition('"payload"')
    outcome = _OUTCOME.search(payload)
    request_id = _ID.search(payload, 0, outcome.start() if outcome else len(payload))
    if not has_payload or not request_id or not 0 < int(request_id[1]) <= LARGEST_ID:
        return InvalidMessage("malformed")
    error = _ERROR.match(payload, outcome.start()) if outcome and complete else None
    if error is None:
        return UnreadableReply(int(request_id[1]))
    message = encodable(error[2])[:_MAX_ERROR_CHARACTERS]
    return RpcFailure(int(request_id[1]), int(error[1]) if error[1] else error_code(message), message)
