"""What is asked of a device before it is called: who it is, and what it can do."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from shared.devices import errors
from shared.devices.tool_catalogue import DeviceTool, ToolCatalogue, parse_tool
from shared.rpc.errors import ToolFailed
from shared.rpc.strict_json import encodable
from shared.telemetry import logger

if TYPE_CHECKING:
    from shared.devices.registry import RegisteredDevice
    from shared.devices.rpc import RpcClient
    from shared.devices.sessions import DeviceSession

_MAX_PAGES: Final = 100
_MAX_TOOLS: Final = 2_000
_MAX_WORD: Final = 128


def capabilities(vision_url: str, vision_token: str) -> dict[str, Any]:
    """What `initialize` tells a device of the backend."""
    return {"vision": {"url": vision_url, "token": vision_token}} if vision_url else {}


def identify(result: Any) -> tuple[str, str]:
    """The name and firmware version that a device gives of itself."""
    info = result.get("serverInfo") if isinstance(result, dict) else None
    given = [info.get("name"), info.get("version")] if isinstance(info, dict) else [None, None]
    name, version = (encodable(each)[:_MAX_WORD] if isinstance(each, str) else "" for each in given)
    return name, version


def list_tools(
    exchange: RpcClient,
    device: RegisteredDevice,
    session: DeviceSession,
    deadline: float,
    *,
    with_user_tools: bool = False,
) -> ToolCatalogue:
    """Every page of the device's list, with its owner's own tools where they are wanted."""
    tools, problem = _pages(exchange, device, session, deadline, {})
    if with_user_tools:
        more, trouble = _pages(exchange, device, session, deadline, {"withUserTools": True})
        own = [replace(tool, user_only=True) for name, tool in more.items() if name not in tools]
        tools, problem = tools | {tool.name: tool for tool in own}, problem or trouble
    if problem:
        logger.warning("partial catalogue", extra={"device_id": device.id, "problem": problem[:200]})
    return ToolCatalogue(
        name=session.name,
        version=session.version,
        tools=tuple(tools.values()),
        complete=not problem,
        problem=problem,
        with_user_tools=with_user_tools,
        read_at=time.time(),
    )


def _pages(
    exchange: RpcClient, device: RegisteredDevice, session: DeviceSession, deadline: float, wanted: dict[str, Any]
) -> tuple[dict[str, DeviceTool], str]:
    """The tools of all pages, and what kept others from being listed."""
    tools: dict[str, DeviceTool] = {}
    cursor, cursors = "", {""}
    for _ in range(_MAX_PAGES):
        try:
            result = exchange.request(device, session.id, "tools/list", {"cursor": cursor} | wanted, deadline=deadline)
        except ToolFailed as failure:
            if not tools:
                raise
            return tools, f"The device said: {failure.message}"
        page = result.get("tools") if isinstance(result, dict) else None
        if not isinstance(page, list):
            if not tools:
                raise errors.unreadable(device.id)
            return tools, "A page of the list cannot be read."
        found = [tool for each in page if (tool := parse_tool(each))]
        for tool in found:
            tools.setdefault(tool.name, tool)
        following = result.get("nextCursor") or ""
        if len(found) < len(page) or not isinstance(following, str) or len(tools) > _MAX_TOOLS:
            return tools, "A page of the list cannot be read."
        if not following:
            return tools, ""
        if following in cursors:
            return tools, "The list repeats itself."
        cursor = following
        cursors.add(cursor)
    return tools, "The list does not end."
