"""The client of devices: tool lists, and tool calls that run at most once.

A call validates its arguments, sends one request, and waits for its own reply. The device's session is cached for a
moment. Nothing is refused by a cached session: another function may have started a newer one.
"""

from __future__ import annotations

import time
from contextlib import suppress
from contextvars import Context
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from shared.devices import errors
from shared.devices.argument_validation import validate_arguments
from shared.devices.firmware_tools import REBOOT, RESTARTING, UPGRADE, describe_restart, is_failed_upgrade
from shared.devices.handshake import Handshake
from shared.devices.protocol import METHOD_NOT_FOUND
from shared.devices.rpc import ConnectionEnded, check_connection
from shared.devices.sessions import SessionStore
from shared.devices.tool_catalogue import unlisted_tool
from shared.devices.tool_lists import ToolLists
from shared.devices.tool_result import DeviceToolResult, InvalidToolResult, tool_result
from shared.platform.background import run_with_timeout
from shared.platform.clock import lasts, now_ms
from shared.platform.telemetry import count
from shared.platform.ttl_cache import TtlCache
from shared.rpc.errors import InvalidParams, KhoError, ToolFailed

if TYPE_CHECKING:
    from collections.abc import Callable

    from shared.aws.dynamodb import Table
    from shared.devices.registry import RegisteredDevice
    from shared.devices.rpc import RpcClient
    from shared.devices.sessions import DeviceSession, DeviceState
    from shared.devices.tool_catalogue import DeviceTool, ToolCatalogue
    from shared.devices.vision import VisionOffer

_STATE_SECONDS: Final = 10.0
"""The time for which a device's session is cached."""
_ANSWER_SECONDS: Final = 10.0
"""The time of the last reply is stored at most this often."""
_RECORD_SECONDS: Final = 1.0
"""The longest that a caller waits for that."""
_REFRESH_INTERVAL_SECONDS: Final = 10.0
"""An unknown tool name causes the list to be read again, at most this often."""
_LISTING_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class ReadyDevice:
    """A device with a session, as of a moment ago."""

    state: DeviceState
    session: DeviceSession
    catalogue: ToolCatalogue | None


class DeviceClient:
    """The client of all devices."""

    def __init__(self, table: Table, rpc: RpcClient, vision: Callable[[RegisteredDevice], VisionOffer | None]) -> None:
        self.rpc = rpc
        self._table = table
        self._ready: TtlCache[tuple[str, str], ReadyDevice] = TtlCache(_STATE_SECONDS, clock=rpc.clock)
        self._answered: TtlCache[tuple[str, str], bool] = TtlCache(_ANSWER_SECONDS, clock=rpc.clock)
        self._tool_lists = ToolLists(table, rpc)
        self.handshake = Handshake(table, rpc, self._tool_lists, vision, self._forget)

    def tools(
        self, device: RegisteredDevice, *, with_user_tools: bool = False
    ) -> tuple[ToolCatalogue, list[DeviceTool]]:
        """Return the device's tools, from the catalogue of its session if there is one, else from the device."""
        deadline = self.rpc.clock() + _LISTING_SECONDS
        ready = self._find_ready(device)
        catalogue = ready.catalogue if ready else None
        if catalogue is None or (with_user_tools and not catalogue.with_user_tools):
            ready = self._require_session(device, ready, deadline)
            catalogue = ready.catalogue
            if catalogue is None or (with_user_tools and not catalogue.with_user_tools):
                catalogue = self._read_tools(device, ready, deadline, with_user_tools=with_user_tools)
        return catalogue, [tool for tool in catalogue.tools if with_user_tools or not tool.user_only]

    def call(self, device: RegisteredDevice, name: str, arguments: dict[str, Any], timeout_ms: int) -> DeviceToolResult:
        """Call a tool at most once and return its result."""
        deadline = self.rpc.clock() + timeout_ms / 1000
        ready, tool, arguments = self._prepare_call(device, name, arguments, deadline)
        called = tool.name if tool else name
        params = {"name": called, "arguments": arguments}
        watch = partial(check_connection, self._table, device, ready.state.presence, now_ms())
        try:
            result = self.rpc.request(device, ready.session.id, "tools/call", params, deadline=deadline, watch=watch)
        except TimeoutError:
            count(device_timeouts=1)
            raise errors.no_reply(device.id, waited_ms=timeout_ms) from None
        except ConnectionEnded as ended:
            self._forget(device)
            if called not in RESTARTING:
                raise ended.error from None
            return self._restart_result(device, called, ready.session, deadline)
        except ToolFailed as failure:
            self._forget(device)  # it may have restarted without its session, which the next call starts then
            self._record_answer(device)
            if tool and _is_unknown_tool(failure):
                with suppress(KhoError):  # the device's own error is the answer, even if the refresh fails
                    self._read_tools(device, ready, deadline, with_user_tools=tool.user_only)
            raise
        self._record_answer(device)
        try:
            answer = tool_result(result)
        except InvalidToolResult:
            raise errors.unreadable(device.id) from None
        if called == UPGRADE and is_failed_upgrade(answer.content):
            raise errors.update_failed(device.id)
        return answer

    def _prepare_call(
        self, device: RegisteredDevice, name: str, arguments: dict[str, Any], deadline: float
    ) -> tuple[ReadyDevice, DeviceTool | None, dict[str, Any]]:
        """Return the ready device, the tool if it is listed, and the validated arguments."""
        ready = self._ready.get((device.tenant_id, device.id))
        tool = ready.catalogue.find(name) if ready and ready.catalogue else None
        if ready and tool:
            with suppress(InvalidParams, ToolFailed):
                return ready, tool, validate_arguments(tool, arguments)
        ready = self._find_ready(device)
        catalogue = ready.catalogue if ready else None
        tool = catalogue.find(name) if catalogue else None
        if tool:
            arguments = validate_arguments(tool, arguments)  # before anything is sent, the handshake included
        ready = self._require_session(device, ready, deadline)
        if tool is None or ready.catalogue is not catalogue:
            tool = self._find_tool(device, ready, name, deadline)
            # A device can have tools that it cannot list; the device itself validates their arguments.
            arguments = validate_arguments(tool or unlisted_tool(name), arguments)
        return ready, tool, arguments

    def _find_tool(self, device: RegisteredDevice, ready: ReadyDevice, name: str, deadline: float) -> DeviceTool | None:
        """Find the tool of this name. Read the list of the device if necessary."""
        catalogue = ready.catalogue or self._read_tools(device, ready, deadline)
        tool = catalogue.find(name)
        refresh_at = catalogue.read_at + _REFRESH_INTERVAL_SECONDS
        fresh = catalogue.with_user_tools and lasts(refresh_at, time.time(), _REFRESH_INTERVAL_SECONDS)
        if tool is None and not fresh:
            catalogue = self._read_tools(device, ready, deadline, with_user_tools=True)
            tool = catalogue.find(name)
        if tool is None and catalogue.complete:
            raise errors.device_error(METHOD_NOT_FOUND, message=f"Unknown tool: {name}")
        return tool

    def _read_tools(
        self, device: RegisteredDevice, ready: ReadyDevice, deadline: float, *, with_user_tools: bool = False
    ) -> ToolCatalogue:
        """Read the device's tool list."""
        try:
            catalogue = self._tool_lists.read(device, ready.session, deadline, with_user_tools=with_user_tools)
        except TimeoutError:
            raise errors.not_ready(device.id) from None
        self._record_answer(device)
        self._ready.put((device.tenant_id, device.id), replace(ready, catalogue=catalogue))
        return catalogue

    def _find_ready(self, device: RegisteredDevice) -> ReadyDevice | None:
        """Return the device with its stored session. Return None if it has none, or if a new session is due."""
        self._forget(device)
        state = SessionStore(self._table, device.tenant_id, device.id).read()
        return self._remember(device, state, state.session) if state.session and state.ready else None

    def _require_session(self, device: RegisteredDevice, ready: ReadyDevice | None, deadline: float) -> ReadyDevice:
        """Return the device with its session, starting one if necessary."""
        if ready and not self.handshake.needs_renewal(device, ready.session):
            return ready
        self.handshake.start_session(device, deadline)
        state = SessionStore(self._table, device.tenant_id, device.id).read()
        if state.session is None:
            raise errors.not_ready(device.id)
        return self._remember(device, state, state.session)

    def _remember(self, device: RegisteredDevice, state: DeviceState, session: DeviceSession) -> ReadyDevice:
        """Return a device with its catalogue. Cache it, unless its session is due for renewal."""
        ready = ReadyDevice(state, session, self._tool_lists.stored(device, session))
        if not self.handshake.needs_renewal(device, session):
            self._ready.put((device.tenant_id, device.id), ready)
        return ready

    def _forget(self, device: RegisteredDevice) -> None:
        self._ready.delete((device.tenant_id, device.id))

    def _restart_result(
        self, device: RegisteredDevice, name: str, before: DeviceSession, deadline: float
    ) -> DeviceToolResult:
        """Return the result of a call that restarted the device; of an update, with the firmware that then runs."""
        if name == REBOOT:
            text = "The device restarted."
        else:
            session = self.handshake.next_session(device, before, deadline)
            text = describe_restart(before.version, session.version if session else None)
        return DeviceToolResult([{"type": "text", "text": text}])

    def _record_answer(self, device: RegisteredDevice) -> None:
        """Record that the device answered, at any time of a request. A store that is slow delays no reply."""
        key = device.tenant_id, device.id
        if self._answered.get(key):
            return
        self._answered.put(key, value=True)
        record = partial(SessionStore(self._table, *key).record_answer, now_ms())
        # The empty context takes the write out of the request, which may begin none after a long call.
        with suppress(KhoError, TimeoutError):
            run_with_timeout(_RECORD_SECONDS, partial(Context().run, record))


def _is_unknown_tool(failure: ToolFailed) -> bool:
    return failure.code == errors.DEVICE_ERROR and failure.details["code"] == METHOD_NOT_FOUND
