"""The device's side of MCP, as the firmware implements it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from infra.local.iot.simulator.quirks import Quirk
from infra.local.iot.simulator.tools import CameraImage, RawResult, SimulatedToolError, page

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from infra.local.iot.simulator.tools import SimulatedTool, State, ToolArgument, Value

_INT32: Final = (-(2**31), 2**31 - 1)
_TLS_PORT: Final = 8883
_UNKNOWN_TOOL: Final = -32601
_WRONG_ARGUMENTS: Final = -32602
_FAILED: Final = -32603


class _RequestError(Exception):
    """A request that is answered with an error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def parse_endpoint(endpoint: str) -> tuple[str, int]:
    """Return host and port of an MQTT endpoint. Raise ValueError where the firmware would restart for ever."""
    host, has_port, port = endpoint.partition(":")
    digits = re.match(r"\s*[+-]?\d+", port)
    if has_port and digits is None:
        raise ValueError(f"the port of '{endpoint}' is not a number")
    return host, int(digits[0]) if digits else _TLS_PORT


@dataclass(frozen=True, slots=True)
class FirmwareCall:
    """A call to run."""

    request_id: Any
    tool: SimulatedTool
    arguments: dict[str, Value]


@dataclass(frozen=True, slots=True)
class FirmwareReply:
    """A JSON-RPC message as text; the firmware builds it by concatenation."""

    text: str


@dataclass(slots=True)
class Firmware:
    """The device's MCP server."""

    board: str
    version: str
    tools: list[SimulatedTool]
    quirks: AbstractSet[Quirk]
    state: State = field(default_factory=dict)
    vision: dict[str, Any] = field(default_factory=dict)
    runs: list[tuple[str, dict[str, Value]]] = field(default_factory=list)
    """Every call that ran, in order."""

    def handle(self, request: Any) -> FirmwareReply | FirmwareCall | None:
        """Handle a message. Return None if the firmware drops it silently."""
        if not isinstance(request, dict) or request.get("jsonrpc") != "2.0":
            return None
        method, params = request.get("method"), request.get("params", {})
        if not isinstance(method, str) or method.startswith("notifications"):
            return None
        request_id = request.get("id")
        if Quirk.NUMBERS_ONLY in self.quirks and (not isinstance(params, dict) or not _is_number(request_id)):
            return None
        if request_id is None:
            return None
        if Quirk.INT32_IDS in self.quirks and _is_number(request_id):
            request_id = _int32(request_id)
        try:
            return self._dispatch(method, params if isinstance(params, dict) else {}, request_id)
        except _RequestError as error:
            return self.error(request_id, error.code, str(error))

    def run(self, call: FirmwareCall) -> FirmwareReply:
        """Run a call and return its reply."""
        self.runs.append((call.tool.name, call.arguments))
        try:
            value = call.tool.run(self.state, call.arguments)
        except SimulatedToolError as error:
            return self.error(call.request_id, _FAILED, str(error))
        result = value.result if isinstance(value, RawResult) else {"content": [self._content(value)], "isError": False}
        return _result(call.request_id, json.dumps(result, separators=(",", ":")))

    def error(self, request_id: Any, code: int, message: str) -> FirmwareReply:
        """Return an error reply."""
        if Quirk.BARE_ERRORS in self.quirks:
            error = f'{{"message":"{message}"}}'
        else:
            error = json.dumps({"code": code, "message": message})
        return FirmwareReply(f'{{"jsonrpc":"2.0","id":{json.dumps(request_id)},"error":{error}}}')

    def _dispatch(self, method: str, params: dict[str, Any], request_id: Any) -> FirmwareReply | FirmwareCall:
        match method:
            case "initialize":
                return self._initialize(params, request_id)
            case "tools/list":
                return self._list(params, request_id)
            case "tools/call":
                return self._call(params, request_id)
        raise _RequestError(_UNKNOWN_TOOL, f"Method not implemented: {method}")

    def _initialize(self, params: dict[str, Any], request_id: Any) -> FirmwareReply:
        capabilities = params.get("capabilities")
        vision = capabilities.get("vision") if isinstance(capabilities, dict) else None
        if isinstance(vision, dict):
            self.vision = vision
        result = {
            "protocolVersion": "2024-11-05",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": self.board, "version": self.version},
        }
        return _result(request_id, json.dumps(result, separators=(",", ":")))

    def _list(self, params: dict[str, Any], request_id: Any) -> FirmwareReply:
        cursor = params.get("cursor")
        try:
            tools = page(
                self.tools,
                cursor if isinstance(cursor, str) else "",
                with_user_tools=params.get("withUserTools") is True,
            )
        except SimulatedToolError as error:
            raise _RequestError(_FAILED, str(error)) from None
        if Quirk.REPEATING_CURSOR in self.quirks and cursor:
            tools = json.dumps(json.loads(tools) | {"nextCursor": cursor}, separators=(",", ":"))
        return _result(request_id, tools)

    def _call(self, params: dict[str, Any], request_id: Any) -> FirmwareCall:
        name = params.get("name")
        if not isinstance(name, str):
            raise _RequestError(_WRONG_ARGUMENTS, "Missing name")
        arguments = params.get("arguments", {})
        if not isinstance(arguments, dict):
            raise _RequestError(_WRONG_ARGUMENTS, "Invalid arguments")
        tool = next((tool for tool in self.tools if tool.name == name), None)
        if tool is None:
            raise _RequestError(_UNKNOWN_TOOL, f"Unknown tool: {name}")
        return FirmwareCall(
            request_id, tool, {argument.name: self._argument_value(argument, arguments) for argument in tool.arguments}
        )

    def _argument_value(self, argument: ToolArgument, arguments: dict[str, Any]) -> Value:
        lenient = Quirk.LENIENT_ARGUMENTS in self.quirks
        value = arguments.get(argument.name)
        if value is None and lenient:
            value = next((each for name, each in arguments.items() if name.lower() == argument.name.lower()), None)
        typed = _typed(argument.kind, value, lenient=lenient)
        if typed is None:
            if argument.default is None or (value is not None and not lenient):
                raise _RequestError(_WRONG_ARGUMENTS, f"Missing valid argument: {argument.name}")
            return argument.default
        if argument.minimum is not None and int(typed) < argument.minimum:
            raise _RequestError(_WRONG_ARGUMENTS, f"Value is below minimum allowed: {argument.minimum}")
        if argument.maximum is not None and int(typed) > argument.maximum:
            raise _RequestError(_WRONG_ARGUMENTS, f"Value exceeds maximum allowed: {argument.maximum}")
        if argument.choices is not None and typed not in argument.choices:
            raise _RequestError(_WRONG_ARGUMENTS, f"Value is none of {', '.join(map(str, argument.choices))}")
        return typed

    def _content(self, value: Value | CameraImage | dict[str, Any]) -> dict[str, Any]:
        match value:
            case CameraImage() if Quirk.IMAGE_STRINGS in self.quirks:
                image = {"type": "image", "mimeType": value.mime_type, "data": value.data}
                return {"type": "image", "image": json.dumps(image, separators=(",", ":"))}
            case CameraImage():
                return {"type": "image", "mimeType": value.mime_type, "data": value.data}
            case bool() | dict():
                return {"type": "text", "text": json.dumps(value, separators=(",", ":"))}
        return {"type": "text", "text": str(value)}


def _result(request_id: Any, result: str) -> FirmwareReply:
    return FirmwareReply(f'{{"jsonrpc":"2.0","id":{json.dumps(request_id)},"result":{result}}}')


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _int32(value: float) -> int:
    low, high = _INT32
    return int(min(max(value, low), high))


def _typed(kind: str, value: Any, *, lenient: bool) -> Value | None:
    """Return the value if it has the type, else None."""
    match kind:
        case "boolean":
            return value if isinstance(value, bool) else None
        case "integer" if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        case "integer":
            return _int32(value) if lenient else (value if isinstance(value, int) else None)
    if not isinstance(value, str):
        return None
    return value.partition("\0")[0] if lenient else value
