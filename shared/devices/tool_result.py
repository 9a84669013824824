"""Tool results as MCP content."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any


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
    if part["type"] == "image":
        return _image(part)
    if part["type"] == "text" and not isinstance(part.get("text"), str):
        raise InvalidToolResult
    return part


def _image(part: dict[str, Any]) -> dict[str, Any]:
    """Unwrap an image, which firmware sends as a JSON string."""
    wrapped = part.get("image")
    try:
        image = json.loads(wrapped) if isinstance(wrapped, str) else part
    except (ValueError, RecursionError):
        raise InvalidToolResult from None
    data, mime_type = (image.get("data"), image.get("mimeType")) if isinstance(image, dict) else (None, None)
    if not isinstance(data, str) or not isinstance(mime_type, str):
        raise InvalidToolResult
    return {"type": "image", "data": data, "mimeType": mime_type}
