"""Tool results as MCP content."""

import base64
import json
import re
from dataclasses import dataclass
from typing import Any, Final

from shared.rpc.strict_json import compact

_IMAGE_TYPE: Final = re.compile(r"image/[\w.+-]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class DeviceToolResult:
    """A tool's result: MCP content, and whether the device marks it as an error."""

    content: list[dict[str, Any]]
    isError: bool = False  # noqa: N815 - MCP's own name


class InvalidToolResult(ValueError):
    """The device's reply is not a valid tool result."""


def tool_result(result: Any) -> DeviceToolResult:
    """Parse the device's result and unwrap its images."""
    content = result.get("content") if isinstance(result, dict) else None
    if not isinstance(content, list):
        raise InvalidToolResult
    return DeviceToolResult([_part(each) for each in content], isError=result.get("isError") is True)


def _part(part: Any) -> dict[str, Any]:
    if not isinstance(part, dict) or not isinstance(part.get("type"), str):
        raise InvalidToolResult
    match part["type"]:
        case "text" if isinstance(part.get("text"), str):
            return {"type": "text", "text": part["text"]}
        case "text":
            raise InvalidToolResult
        case "image":
            return _image(part)
    # Clients reject content of an unknown type, or with other fields than its type has.
    return {"type": "text", "text": compact(part)}


def _image(part: dict[str, Any]) -> dict[str, Any]:
    """Unwrap an image, which firmware sends as a JSON string."""
    wrapped = part.get("image")
    try:
        image = json.loads(wrapped) if isinstance(wrapped, str) else part
    except (ValueError, RecursionError):
        raise InvalidToolResult from None
    data, mime_type = (image.get("data"), image.get("mimeType")) if isinstance(image, dict) else (None, None)
    if not isinstance(data, str) or not isinstance(mime_type, str) or not _IMAGE_TYPE.fullmatch(mime_type):
        raise InvalidToolResult
    try:
        base64.b64decode(data, validate=True)
    except ValueError:
        raise InvalidToolResult from None
    return {"type": "image", "data": data, "mimeType": mime_type}
