"""The tool lists of devices: read page by page, and kept with the session in which they were read."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from shared.devices import errors
from shared.devices.tool_catalogue import CatalogueStore, DeviceTool, ToolCatalogue, parse_tool
from shared.platform.telemetry import logger
from shared.platform.ttl_cache import TtlCache
from shared.rpc.errors import ToolFailed

if TYPE_CHECKING:
    from shared.aws.dynamodb import Table
    from shared.devices.registry import RegisteredDevice
    from shared.devices.rpc import RpcClient
    from shared.devices.sessions import DeviceSession

_MAX_PAGES: Final = 100
_MAX_TOOLS: Final = 2_000
_CACHE_SECONDS: Final = 60.0


class ToolLists:
    """The tool lists of all devices, each cached for a while."""

    def __init__(self, table: Table, rpc: RpcClient) -> None:
        self._table = table
        self._rpc = rpc
        self._cache: TtlCache[tuple[str, str, str], ToolCatalogue] = TtlCache(_CACHE_SECONDS, clock=rpc.clock)

    def stored(self, device: RegisteredDevice, session: DeviceSession) -> ToolCatalogue | None:
        """Return the list that was read in this session, None if there is none."""
        key = device.tenant_id, device.id, session.handshake
        catalogue = self._cache.get(key)
        if catalogue is None and (catalogue := self.store(device).find(session)):
            self._cache.put(key, catalogue)
        return catalogue

    def read(
        self, device: RegisteredDevice, session: DeviceSession, deadline: float, *, with_user_tools: bool = False
    ) -> ToolCatalogue:
        """Read the device's list and store it."""
        catalogue = list_tools(self._rpc, device, session, deadline, with_user_tools=with_user_tools)
        self.store(device).put(catalogue)
        if catalogue.tools:
            self._cache.put((device.tenant_id, device.id, catalogue.handshake), catalogue)
        return catalogue

    def store(self, device: RegisteredDevice) -> CatalogueStore:
        """Return the stored lists of one device."""
        return CatalogueStore(self._table, device.tenant_id, device.id)


def list_tools(
    rpc: RpcClient,
    device: RegisteredDevice,
    session: DeviceSession,
    deadline: float,
    *,
    with_user_tools: bool = False,
) -> ToolCatalogue:
    """Read every page of the device's tool list, with user-only tools if requested."""
    tools, problem = _pages(rpc, device, session, deadline, {})
    if with_user_tools:
        listed, user_tools_problem = _pages(rpc, device, session, deadline, {"withUserTools": True})
        user_tools = [replace(tool, user_only=True) for name, tool in listed.items() if name not in tools]
        tools, problem = tools | {tool.name: tool for tool in user_tools}, problem or user_tools_problem
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
        handshake=session.handshake,
    )


def _pages(
    rpc: RpcClient, device: RegisteredDevice, session: DeviceSession, deadline: float, options: dict[str, Any]
) -> tuple[dict[str, DeviceTool], str]:
    """Return the tools of all pages, and the problem that kept further pages from being read."""
    tools: dict[str, DeviceTool] = {}
    cursor, cursors = "", {""}
    for _ in range(_MAX_PAGES):
        try:
            result = rpc.request(device, session.id, "tools/list", {"cursor": cursor} | options, deadline=deadline)
        except ToolFailed as failure:
            if not tools:
                raise
            return tools, f"The device said: {failure.message}"
        page = result.get("tools") if isinstance(result, dict) else None
        if not isinstance(page, list):
            if not tools:
                raise errors.unreadable(device.id)
            return tools, "A page of the list is unreadable."
        parsed = [tool for each in page if (tool := parse_tool(each))]
        for tool in parsed:
            tools.setdefault(tool.name, tool)
        next_cursor = result.get("nextCursor") or ""
        if len(parsed) < len(page) or not isinstance(next_cursor, str) or len(tools) > _MAX_TOOLS:
            return tools, "A page of the list is unreadable."
        if not next_cursor:
            return tools, ""
        if next_cursor in cursors:
            return tools, "The list repeats a cursor."
        cursor = next_cursor
        cursors.add(cursor)
    return tools, "The list has too many pages."
