"""The client of devices: handshakes, tool catalogues and tool calls.

A session starts when a device connects for the first time, when it says hello, or with the first call or list on a
connection: `initialize`, then every page of `tools/list`. One function at a time performs the handshake. A catalogue
belongs to the session in which it was read: firmware can be rebuilt under the same version. A call validates its
arguments, sends one request, and waits for its own reply.
"""

from __future__ import annotations

import secrets
import time
from contextlib import suppress
from contextvars import Context
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from shared.devices import errors
from shared.devices.argument_validation import validate_arguments
from shared.devices.firmware_tools import REBOOT, UPGRADE, is_failed_upgrade, restarts_device
from shared.devices.handshake import identify, list_tools
from shared.devices.protocol import METHOD_NOT_FOUND
from shared.devices.sessions import DeviceSession, SessionStore
from shared.devices.tool_catalogue import CatalogueStore, unlisted_tool
from shared.devices.tool_result import DeviceToolResult, InvalidToolResult, tool_result
from shared.platform.background import run_with_timeout
from shared.platform.clock import lasts, now_ms
from shared.platform.telemetry import count, seconds_left
from shared.platform.ttl_cache import TtlCache
from shared.rpc.errors import InvalidParams, KhoError, OutOfTime, ToolFailed

if TYPE_CHECKING:
    from collections.abc import Callable

    from shared.aws.dynamodb import Table
    from shared.devices.registry import RegisteredDevice
    from shared.devices.rpc import RpcClient
    from shared.devices.sessions import DevicePresence, DeviceState
    from shared.devices.tool_catalogue import DeviceTool, ToolCatalogue
    from shared.devices.vision import VisionOffer

_STATE_SECONDS: Final = 10.0
_CATALOGUE_SECONDS: Final = 60.0
"""Cache times; a catalogue belongs to one session, so it hardly changes."""
_ANSWER_SECONDS: Final = 10.0
"""The time of the last reply is stored at most this often."""
_RECORD_SECONDS: Final = 1.0
"""The longest that a caller waits for that."""
_REFRESH_INTERVAL_SECONDS: Final = 10.0
"""An unknown tool name causes the list to be read again, at most this often."""
_LISTING_SECONDS: Final = 10.0
_RENEWAL_MS: Final = 43_200_000
"""The age at which a session with a token for photos is renewed before a call, half of the token's life."""
_POLL_SECONDS: Final = 0.05
_MAX_POLL_SECONDS: Final = 0.5
"""The intervals, with backoff, at which to poll for the end of another function's handshake."""


@dataclass(frozen=True, slots=True)
class ReadyDevice:
    """A device with a session, as of a moment ago."""

    state: DeviceState
    session: DeviceSession
    catalogue: ToolCatalogue | None


class ConnectionEnded(Exception):
    """The device's connection ended after a request was sent, so that no reply can come."""

    def __init__(self, error: KhoError) -> None:
        super().__init__(error.message)
        self.error = error


@dataclass(frozen=True, slots=True)
class DeviceHello:
    """A hello: the session id that it was answered with, and its arrival in milliseconds since 1970."""

    session_id: str
    at: int


class DeviceClient:
    """The client of all devices, with short-lived caches of their state."""

    def __init__(self, table: Table, rpc: RpcClient, vision: Callable[[RegisteredDevice], VisionOffer | None]) -> None:
        self.rpc = rpc
        self._table = table
        self._vision = vision
        clock = rpc.clock
        self._devices: TtlCache[tuple[str, str], ReadyDevice] = TtlCache(_STATE_SECONDS, clock=clock)
        self._catalogues: TtlCache[tuple[str, str, str], ToolCatalogue] = TtlCache(_CATALOGUE_SECONDS, clock=clock)
        self._answered: TtlCache[tuple[str, str], bool] = TtlCache(_ANSWER_SECONDS, clock=clock)

    def tools(
        self, device: RegisteredDevice, *, with_user_tools: bool = False
    ) -> tuple[ToolCatalogue, list[DeviceTool]]:
        """Return the device's tools, from the catalogue of its session if there is one, else from the device."""
        deadline = self.rpc.clock() + _LISTING_SECONDS
        catalogue = self._stored_catalogue(device)
        if catalogue is None or (with_user_tools and not catalogue.with_user_tools):
            ready = self._ready_device(device, deadline)
            catalogue = ready.catalogue
            if catalogue is None or (with_user_tools and not catalogue.with_user_tools):
                catalogue = self._refresh_catalogue(device, ready, deadline, with_user_tools=with_user_tools)
        return catalogue, [tool for tool in catalogue.tools if with_user_tools or not tool.user_only]

    def call(self, device: RegisteredDevice, name: str, arguments: dict[str, Any], timeout_ms: int) -> DeviceToolResult:
        """Call a tool at most once and return its result."""
        deadline = self.rpc.clock() + timeout_ms / 1000
        ready, tool, arguments = self._prepare_call(device, name, arguments, deadline)
        called = tool.name if tool else name
        params = {"name": called, "arguments": arguments}
        watch = self._presence_watch(device, ready.state.presence, now_ms())
        try:
            result = self.rpc.request(device, ready.session.id, "tools/call", params, deadline=deadline, watch=watch)
        except TimeoutError:
            count(device_timeouts=1)
            raise errors.no_reply(device.id, waited_ms=timeout_ms) from None
        except ConnectionEnded as ended:
            if restarts_device(called):
                return self._restart_result(device, called, ready.session, deadline)
            raise ended.error from None
        except ToolFailed as failure:
            self._forget_device(device)  # it may have restarted without its session, which the next call starts then
            self._record_answer(device)
            if tool and _is_unknown_tool(failure):
                with suppress(KhoError):  # the device's own error is the answer, even if the refresh fails
                    self._refresh_catalogue(device, ready, deadline, with_user_tools=tool.user_only)
            raise
        self._record_answer(device)
        try:
            answer = tool_result(result)
        except InvalidToolResult:
            raise errors.unreadable(device.id) from None
        if is_failed_upgrade(called, answer.content):
            raise errors.update_failed(device.id)
        return answer

    def start_first_session(self, device: RegisteredDevice, deadline: float) -> None:
        """Start a session with a device that has connected, unless its tools are known: its next call starts one then.

        A list after the connection starts one too, so none is answered from the tools of before.
        """
        session = self._session_store(device).read().session
        if session is None or session.is_obsolete or not self._catalogue_store(device).exists(session):
            self.start_session(device, deadline)

    def start_session(self, device: RegisteredDevice, deadline: float, hello: DeviceHello | None = None) -> None:
        """Start a session, unless one exists on the device's current connection and is not older than the hello.

        One function at a time performs the handshake; the others poll until it has ended.
        """
        sessions, claimant = self._session_store(device), secrets.token_hex(8)
        pause = _POLL_SECONDS
        while True:
            if self._has_session(device, sessions.read(), hello):
                return
            left = deadline - self.rpc.clock()
            if left <= 0:
                raise errors.not_ready(device.id)
            if sessions.claim(claimant, left + 1):
                break
            time.sleep(min(pause, left))
            pause = min(pause * 1.5, _MAX_POLL_SECONDS)
        state, started = sessions.read(), False
        if self._has_session(device, state, hello):  # another function started it just before the claim
            sessions.release_claim(claimant)
            return
        try:
            session_id = hello.session_id if hello else secrets.token_hex(16)
            session = self._initialize(device, state.presence, session_id, claimant, deadline)
            started = sessions.start(claimant, session)
        except (TimeoutError, ConnectionEnded, OutOfTime):
            raise errors.not_ready(device.id) from None
        finally:
            if not started:
                with suppress(OutOfTime):
                    sessions.release_claim(claimant)

    def _prepare_call(
        self, device: RegisteredDevice, name: str, arguments: dict[str, Any], deadline: float
    ) -> tuple[ReadyDevice, DeviceTool | None, dict[str, Any]]:
        """Return the ready device, the tool if it is listed, and the validated arguments."""
        cached = self._cached_device(device)
        tool = cached.catalogue.find(name) if cached and cached.catalogue else None
        if cached and tool and not self._needs_renewal(device, cached.session):
            with suppress(InvalidParams, ToolFailed):
                return cached, tool, validate_arguments(tool, arguments)
        # Nothing is refused by a cached session: another function may have started a newer one.
        self._forget_device(device)
        catalogue = self._stored_catalogue(device)
        tool = catalogue.find(name) if catalogue else None
        if tool:
            arguments = validate_arguments(tool, arguments)  # before anything is sent, the handshake included
        ready = self._ready_device(device, deadline)
        if tool is None or ready.catalogue is not catalogue:
            tool = self._resolve_tool(device, ready, name, deadline)
            # A device can have tools that it cannot list; the device itself validates their arguments.
            arguments = validate_arguments(tool or unlisted_tool(name), arguments)
        return ready, tool, arguments

    def _resolve_tool(
        self, device: RegisteredDevice, ready: ReadyDevice, name: str, deadline: float
    ) -> DeviceTool | None:
        """Find the tool of this name, refreshing the catalogue if necessary."""
        catalogue = ready.catalogue
        if catalogue is None:
            catalogue = self._refresh_catalogue(device, ready, deadline, with_user_tools=False)
        tool = catalogue.find(name)
        refresh_at = catalogue.read_at + _REFRESH_INTERVAL_SECONDS
        fresh = catalogue.with_user_tools and lasts(refresh_at, time.time(), _REFRESH_INTERVAL_SECONDS)
        if tool is None and not fresh:
            catalogue = self._refresh_catalogue(device, ready, deadline, with_user_tools=True)
            tool = catalogue.find(name)
        if tool is None and catalogue.complete:
            raise errors.device_error(METHOD_NOT_FOUND, message=f"Unknown tool: {name}")
        return tool

    def _ready_device(self, device: RegisteredDevice, deadline: float) -> ReadyDevice:
        """Return the device with its session, starting one if necessary."""
        ready = self._cached_device(device)
        if ready and not self._needs_renewal(device, ready.session):
            return ready
        sessions = self._session_store(device)
        state = sessions.read()
        if not self._has_session(device, state):
            self.start_session(device, deadline)
            state = sessions.read()
        if state.session is None:
            raise errors.not_ready(device.id)
        return self._cache_device(device, state, state.session, self._find_catalogue(device, state.session))

    def _stored_catalogue(self, device: RegisteredDevice) -> ToolCatalogue | None:
        """Return the catalogue of the device's session. Return None if it has none, or if a new session is due."""
        state = self._session_store(device).read()
        if state.session is None or not state.ready:
            self._forget_device(device)
            return None
        return self._cache_device(device, state, state.session, self._find_catalogue(device, state.session)).catalogue

    def _restart_result(
        self, device: RegisteredDevice, name: str, before: DeviceSession, deadline: float
    ) -> DeviceToolResult:
        """Return the result of a call that restarted the device; of an update, with the firmware that then runs."""
        session = self._next_session(device, before, deadline) if name == UPGRADE else None
        if name == REBOOT:
            text = "The device restarted."
        elif session is None:
            text = "The device restarted to run the new firmware; 'devices/get' shows it once the device is back."
        elif session.version == before.version:
            text = f"The device restarted; the version of its firmware is {session.version}, as before."
        else:
            text = f"The device restarted with firmware {session.version}; before, it was {before.version}."
        return DeviceToolResult([{"type": "text", "text": text}])

    def _next_session(self, device: RegisteredDevice, before: DeviceSession, deadline: float) -> DeviceSession | None:
        """Wait for the device, and start the session after `before`. Return None if the time is over."""
        sessions = self._session_store(device)
        while True:
            state = sessions.read()
            if state.session and state.session.handshake != before.handshake:
                return state.session
            left = min(deadline - self.rpc.clock(), seconds_left()) - _MAX_POLL_SECONDS
            if left <= 0:
                return None
            if state.presence and state.presence.connected and not state.ready:
                with suppress(KhoError):  # it may have gone again
                    self.start_session(device, self.rpc.clock() + left)
            else:
                time.sleep(_MAX_POLL_SECONDS)

    def _record_answer(self, device: RegisteredDevice) -> None:
        """Record that the device answered, at any time of a request. A store that is slow delays no reply."""
        key = device.tenant_id, device.id
        if self._answered.get(key):
            return
        self._answered.put(key, value=True)
        record = partial(self._session_store(device).record_answer, now_ms())
        # The empty context takes the write out of the request, which may begin none after a long call.
        with suppress(KhoError, TimeoutError):
            run_with_timeout(_RECORD_SECONDS, partial(Context().run, record))

    def _has_session(self, device: RegisteredDevice, state: DeviceState, hello: DeviceHello | None = None) -> bool:
        session = state.session
        if session is None or not state.ready or self._needs_renewal(device, session):
            return False
        if hello is None or session.id == hello.session_id:
            return True
        if session.started_at < hello.at:
            return False
        # After its hello the device answered a handshake that its connect or a call had started.
        renamed = self._session_store(device).rename(session.id, hello.session_id)
        self._forget_device(device)
        return renamed

    def _needs_renewal(self, device: RegisteredDevice, session: DeviceSession) -> bool:
        """Return True if the session's token for photos is old, and this process can give the device another."""
        is_old = bool(session.vision_hash) and now_ms() - session.started_at >= _RENEWAL_MS
        return is_old and self._vision(device) is not None

    def _initialize(
        self,
        device: RegisteredDevice,
        presence: DevicePresence | None,
        session_id: str,
        handshake: str,
        deadline: float,
    ) -> DeviceSession:
        connection = presence.connection if presence and presence.connected else ""
        offer = self._vision(device)
        params = {"capabilities": offer.capabilities() if offer else {}}
        watch = self._presence_watch(device, presence, now_ms())
        result = self.rpc.request(device, session_id, "initialize", params, deadline=deadline, watch=watch)
        name, version = identify(result)
        vision_hash = offer.token_hash if offer else ""
        session = DeviceSession(session_id, name, version, now_ms(), connection, handshake, vision_hash)
        # If the device cannot list its tools now, the session starts all the same; the first call reads the list.
        with suppress(ToolFailed):
            self._catalogue_store(device).put(list_tools(self.rpc, device, session, deadline))
        self._forget_device(device)
        return session

    def _refresh_catalogue(
        self, device: RegisteredDevice, ready: ReadyDevice, deadline: float, *, with_user_tools: bool
    ) -> ToolCatalogue:
        """Read the device's tool list and store it."""
        try:
            catalogue = list_tools(self.rpc, device, ready.session, deadline, with_user_tools=with_user_tools)
        except TimeoutError:
            raise errors.not_ready(device.id) from None
        self._record_answer(device)
        self._catalogue_store(device).put(catalogue)
        if catalogue.tools:
            self._catalogues.put((device.tenant_id, device.id, catalogue.handshake), catalogue)
        self._cache_device(device, ready.state, ready.session, catalogue)
        return catalogue

    def _find_catalogue(self, device: RegisteredDevice, session: DeviceSession) -> ToolCatalogue | None:
        key = (device.tenant_id, device.id, session.handshake)
        catalogue = self._catalogues.get(key)
        if catalogue is None and (catalogue := self._catalogue_store(device).find(session)):
            self._catalogues.put(key, catalogue)
        return catalogue

    def _presence_watch(
        self, device: RegisteredDevice, before: DevicePresence | None, sent_at: int
    ) -> Callable[[], None]:
        """Return a check that raises once no reply can come: a device that disconnects forgets its calls."""

        def watch() -> None:
            if seconds_left() <= 0:
                return
            presence = self._session_store(device).read().presence
            if presence is None or presence == before or presence.changed_at < sent_at:
                return
            self._forget_device(device)
            lost = errors.replaced if presence.connected else errors.connection_lost
            raise ConnectionEnded(lost(device.id))

        return watch

    def _session_store(self, device: RegisteredDevice) -> SessionStore:
        return SessionStore(self._table, device.tenant_id, device.id)

    def _catalogue_store(self, device: RegisteredDevice) -> CatalogueStore:
        return CatalogueStore(self._table, device.tenant_id, device.id)

    def _cached_device(self, device: RegisteredDevice) -> ReadyDevice | None:
        return self._devices.get((device.tenant_id, device.id))

    def _cache_device(
        self, device: RegisteredDevice, state: DeviceState, session: DeviceSession, catalogue: ToolCatalogue | None
    ) -> ReadyDevice:
        return self._devices.put((device.tenant_id, device.id), ReadyDevice(state, session, catalogue))

    def _forget_device(self, device: RegisteredDevice) -> None:
        self._devices.delete((device.tenant_id, device.id))


def _is_unknown_tool(failure: ToolFailed) -> bool:
    return failure.code == errors.DEVICE_ERROR and failure.details["code"] == METHOD_NOT_FOUND
