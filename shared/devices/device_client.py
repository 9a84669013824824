"""Talks with devices: the handshake, the catalogue, the calls.

session    begun on presence, on hello, or by the first call: `initialize`, then every page of `tools/list` where no
           catalogue of this name and firmware version is kept; one function at a time does it
call       arguments checked, sent once, its own reply awaited
"""

from __future__ import annotations

import secrets
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from shared.devices import errors
from shared.devices.argument_validation import validate_arguments
from shared.devices.handshake import identify, list_tools
from shared.devices.protocol import METHOD_NOT_FOUND
from shared.devices.sessions import DeviceSession, SessionStore
from shared.devices.tool_catalogue import CatalogueStore
from shared.devices.tool_result import DeviceToolResult, InvalidToolResult, tool_result
from shared.rpc.errors import Conflict, KhoError, OutOfTime, ToolFailed
from shared.telemetry import count, seconds_left
from shared.ttl_cache import TtlCache

if TYPE_CHECKING:
    from collections.abc import Callable

    from shared.devices.registry import RegisteredDevice
    from shared.devices.rpc import RpcClient
    from shared.devices.sessions import DevicePresence, DeviceState
    from shared.devices.tool_catalogue import DeviceTool, ToolCatalogue
    from shared.dynamodb import Table

DEFAULT_TIMEOUT_MS: Final = 10_000
MAX_TIMEOUT_MS: Final = 25_000
_STATE_SECONDS: Final = 10.0
_CATALOGUE_SECONDS: Final = 60.0
"""How long they are remembered; a list is that of one name and version, which hardly changes."""
_READ_AGAIN_SECONDS: Final = 10.0
"""A name that is not listed has the list read again, but not each time."""
_LISTING_SECONDS: Final = 10.0
_POLL_SECONDS: Final = 0.05
_MAX_POLL_SECONDS: Final = 0.5
"""How often those look who wait for another's handshake: less and less often, for it may have a crowd to serve."""


@dataclass(frozen=True, slots=True)
class ReadyDevice:
    """A device that is ready to be called, as it was a moment ago."""

    state: DeviceState
    session: DeviceSession
    catalogue: ToolCatalogue | None


@dataclass(frozen=True, slots=True)
class DeviceHello:
    """A hello: when it came, in milliseconds since 1970, and the session that it was answered with."""

    session_id: str
    at: int


class DeviceClient:
    """What this process says to devices, and what it remembers of them for a moment."""

    def __init__(self, table: Table, exchange: RpcClient, capabilities: dict[str, Any]) -> None:
        self.exchange = exchange
        self._table = table
        self._capabilities = capabilities
        self._known: TtlCache[tuple[str, str], ReadyDevice] = TtlCache(_STATE_SECONDS)
        self._read: TtlCache[tuple[str, str, str, str], ToolCatalogue] = TtlCache(_CATALOGUE_SECONDS)

    def tools(
        self, device: RegisteredDevice, *, with_user_tools: bool = False
    ) -> tuple[ToolCatalogue, list[DeviceTool]]:
        """What the device can do: as it is kept, without waking the device, or as the device says now."""
        deadline = time.monotonic() + _LISTING_SECONDS
        catalogue = self._cached_catalogue(device)
        if catalogue is None or (with_user_tools and not catalogue.with_user_tools):
            known = self._ready(device, deadline)
            catalogue = known.catalogue
            if catalogue is None or (with_user_tools and not catalogue.with_user_tools):
                catalogue = self._read_again(device, known, deadline, with_user_tools=with_user_tools)
        return catalogue, [tool for tool in catalogue.tools if with_user_tools or not tool.user_only]

    def call(self, device: RegisteredDevice, name: str, arguments: dict[str, Any], timeout_ms: int) -> DeviceToolResult:
        """What the tool gives; it is called once, or not at all."""
        deadline = time.monotonic() + timeout_ms / 1000
        known = self._recall(device)
        catalogue = known.catalogue if known else self._cached_catalogue(device)
        tool = catalogue.find(name) if catalogue else None
        if tool:
            arguments = validate_arguments(tool, arguments)  # before anything is sent, a handshake too
        known = known or self._ready(device, deadline)
        if known.catalogue is not catalogue or tool is None:
            tool, arguments = self._resolve(device, known, name, arguments, deadline)
        params = {"name": tool.name if tool else name, "arguments": arguments}
        sent_at = _now()
        try:
            watch = self._watch(device, known.state.presence, sent_at)
            result = self.exchange.request(
                device, known.session.id, "tools/call", params, deadline=deadline, watch=watch
            )
            return tool_result(result)
        except TimeoutError:
            count(device_timeouts=1)
            raise errors.no_reply(device.id, waited_ms=timeout_ms) from None
        except InvalidToolResult:
            raise errors.unreadable(device.id) from None
        except ToolFailed as failure:
            if tool and _is_unknown_tool(failure):
                with suppress(KhoError):  # the device's own error is the answer, whatever comes of reading again
                    self._read_again(device, known, deadline, with_user_tools=tool.user_only)
            raise

    def begin(self, device: RegisteredDevice, deadline: float, greeting: DeviceHello | None = None) -> None:
        """Begin a session unless one has begun on the device's connection: for a hello, since it came."""
        self._shake_hands(device, deadline, greeting)

    def _resolve(
        self, device: RegisteredDevice, known: ReadyDevice, name: str, arguments: dict[str, Any], deadline: float
    ) -> tuple[DeviceTool | None, dict[str, Any]]:
        """The tool of this name, found anew if need be, and the arguments as it takes them."""
        catalogue = known.catalogue
        if catalogue is None:
            catalogue = self._read_again(device, known, deadline, with_user_tools=False)
        tool = catalogue.find(name)
        fresh = catalogue.with_user_tools and time.time() - catalogue.read_at < _READ_AGAIN_SECONDS
        if tool is None and not fresh:
            catalogue = self._read_again(device, known, deadline, with_user_tools=True)
            tool = catalogue.find(name)
        if tool is None and catalogue.complete:
            raise errors.device_error(METHOD_NOT_FOUND, message=f"Unknown tool: {name}")
        # What a device cannot list, it may have all the same; it alone can say what such a tool takes.
        return tool, validate_arguments(tool, arguments) if tool else arguments

    def _ready(self, device: RegisteredDevice, deadline: float) -> ReadyDevice:
        known = self._recall(device)
        if known:
            return known
        sessions = self._sessions(device)
        state = sessions.read()
        if not state.ready:
            self._shake_hands(device, deadline)
            state = sessions.read()
        session = state.session
        if session is None:
            raise errors.not_ready(device.id)
        found = self._find(device, session)
        return self._remember(device, state, session, found)

    def _cached_catalogue(self, device: RegisteredDevice) -> ToolCatalogue | None:
        """The catalogue of the name and version that the device had last."""
        known = self._recall(device)
        if known:
            return known.catalogue
        state = self._sessions(device).read()
        if state.session is None:
            return None
        found = self._find(device, state.session)
        if state.ready and found:
            self._remember(device, state, state.session, found)
        return found

    def _shake_hands(self, device: RegisteredDevice, deadline: float, greeting: DeviceHello | None = None) -> None:
        sessions, claimant = self._sessions(device), secrets.token_hex(8)
        pause = _POLL_SECONDS
        while not self._has_begun(device, sessions.read(), greeting):
            left = deadline - time.monotonic()
            if left <= 0:
                raise errors.not_ready(device.id)
            if sessions.claim(claimant, left + 1):
                break
            time.sleep(min(pause, left))
            pause = min(pause * 1.5, _MAX_POLL_SECONDS)
        else:
            return
        state, begun = sessions.read(), False
        if self._has_begun(device, state, greeting):  # by another, between the look and the claim
            sessions.give_up(claimant)
            return
        try:
            session_id = greeting.session_id if greeting else secrets.token_hex(16)
            session = self._initialize(device, state.presence, session_id, deadline)
            begun = sessions.begin(claimant, session)
        except (TimeoutError, OutOfTime, Conflict):
            raise errors.not_ready(device.id) from None
        finally:
            if not begun:
                with suppress(OutOfTime):
                    sessions.give_up(claimant)

    def _has_begun(self, device: RegisteredDevice, state: DeviceState, greeting: DeviceHello | None) -> bool:
        session = state.session
        if session is None or not state.ready:
            return False
        if greeting is None or session.id == greeting.session_id:
            return True
        if session.started_at < greeting.at:
            return False
        # The device has answered since it said hello, to a handshake that its coming or a call has begun.
        renamed = self._sessions(device).rename(session.id, greeting.session_id)
        self._forget(device)
        return renamed

    def _initialize(
        self, device: RegisteredDevice, presence: DevicePresence | None, session_id: str, deadline: float
    ) -> DeviceSession:
        connection = presence.connection if presence and presence.connected else ""
        params = {"capabilities": self._capabilities}
        watch = self._watch(device, presence, _now())
        said = self.exchange.request(device, session_id, "initialize", params, deadline=deadline, watch=watch)
        name, version = identify(said)
        session = DeviceSession(session_id, name, version, _now(), connection)
        catalogues = self._catalogues(device)
        kept = catalogues.find(name, version)
        if kept is None or not kept.complete:
            # A device that cannot list its tools now has a session all the same, and is asked again when one is called.
            with suppress(ToolFailed):
                catalogues.keep(list_tools(self.exchange, device, session, deadline))
            self._read.forget((device.tenant_id, device.id, name, version))
        self._forget(device)
        return session

    def _read_again(
        self, device: RegisteredDevice, known: ReadyDevice, deadline: float, *, with_user_tools: bool
    ) -> ToolCatalogue:
        try:
            read = list_tools(self.exchange, device, known.session, deadline, with_user_tools=with_user_tools)
        except TimeoutError:
            raise errors.not_ready(device.id) from None
        self._catalogues(device).keep(read)
        if read.tools:
            self._read.put((device.tenant_id, device.id, read.name, read.version), read)
        self._remember(device, known.state, known.session, read)
        return read

    def _watch(self, device: RegisteredDevice, before: DevicePresence | None, sent_at: int) -> Callable[[], None]:
        """Whether an answer can still come: a device that is gone, or has come back, has forgotten the call."""

        def watch() -> None:
            if seconds_left() <= 0:
                return
            presence = self._sessions(device).read().presence
            if presence is None or presence == before or presence.changed_at < sent_at:
                return
            self._forget(device)
            raise errors.replaced(device.id) if presence.connected else errors.connection_lost(device.id)

        return watch

    def _sessions(self, device: RegisteredDevice) -> SessionStore:
        return SessionStore(self._table, device.tenant_id, device.id)

    def _catalogues(self, device: RegisteredDevice) -> CatalogueStore:
        return CatalogueStore(self._table, device.tenant_id, device.id)

    def _find(self, device: RegisteredDevice, session: DeviceSession) -> ToolCatalogue | None:
        key = (device.tenant_id, device.id, session.name, session.version)
        found = self._read.get(key)
        if found is None and (found := self._catalogues(device).find(session.name, session.version)):
            self._read.put(key, found)
        return found

    def _recall(self, device: RegisteredDevice) -> ReadyDevice | None:
        return self._known.get((device.tenant_id, device.id))

    def _remember(
        self, device: RegisteredDevice, state: DeviceState, session: DeviceSession, catalogue: ToolCatalogue | None
    ) -> ReadyDevice:
        return self._known.put((device.tenant_id, device.id), ReadyDevice(state, session, catalogue))

    def _forget(self, device: RegisteredDevice) -> None:
        self._known.forget((device.tenant_id, device.id))


def _now() -> int:
    return int(time.time() * 1000)


def _is_unknown_tool(failure: ToolFailed) -> bool:
    return failure.code == errors.DEVICE_ERROR and failure.details["code"] == METHOD_NOT_FOUND
