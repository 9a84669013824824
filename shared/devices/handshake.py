"""The handshake that starts a device's session: `initialize`, then every page of `tools/list`.

A session starts when a device connects for the first time, when it says hello, or with the first call or list on a
connection. One function at a time performs the handshake.
"""

from __future__ import annotations

import secrets
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from shared.devices import errors
from shared.devices.rpc import ConnectionEnded, check_connection
from shared.devices.sessions import DeviceSession, SessionStore
from shared.platform.clock import now_ms
from shared.platform.telemetry import seconds_left
from shared.rpc.errors import KhoError, OutOfTime, ToolFailed
from shared.rpc.strict_json import encodable

if TYPE_CHECKING:
    from collections.abc import Callable

    from shared.aws.dynamodb import Table
    from shared.devices.registry import RegisteredDevice
    from shared.devices.rpc import RpcClient
    from shared.devices.sessions import DevicePresence, DeviceState
    from shared.devices.tool_lists import ToolLists
    from shared.devices.vision import VisionOffer

_POLL_SECONDS: Final = 0.05
_MAX_POLL_SECONDS: Final = 0.5
"""The intervals, with backoff, at which to poll for the end of another function's handshake."""
_RENEWAL_MS: Final = 43_200_000
"""The age at which a session with a token for photos is renewed before a call, half of the token's life."""
_MAX_CHARACTERS: Final = 128


@dataclass(frozen=True, slots=True)
class DeviceHello:
    """A hello: the session id that it was answered with, and its arrival in milliseconds since 1970."""

    session_id: str
    at: int


class Handshake:
    """The handshake with any device. `on_start` is called with each device whose session has changed."""

    def __init__(
        self,
        table: Table,
        rpc: RpcClient,
        tool_lists: ToolLists,
        vision: Callable[[RegisteredDevice], VisionOffer | None],
        on_start: Callable[[RegisteredDevice], None] = lambda _device: None,
    ) -> None:
        self._table = table
        self._rpc = rpc
        self._tool_lists = tool_lists
        self._vision = vision
        self._on_start = on_start

    def start_first_session(self, device: RegisteredDevice, deadline: float) -> None:
        """Start a session with a device that has connected, unless its tools are known: its next call starts one then.

        A list after the connection starts one too, so none is answered from the tools of before.
        """
        session = self._sessions(device).read().session
        if session is None or session.is_obsolete or not self._tool_lists.store(device).exists(session):
            self.start_session(device, deadline)

    def start_session(self, device: RegisteredDevice, deadline: float, hello: DeviceHello | None = None) -> None:
        """Start a session, unless one exists on the device's current connection and is not older than the hello.

        One function at a time performs the handshake; the others poll until it has ended.
        """
        sessions, claimant = self._sessions(device), secrets.token_hex(8)
        pause = _POLL_SECONDS
        while True:
            if self._has_session(device, sessions.read(), hello):
                return
            left = deadline - self._rpc.clock()
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
            self._on_start(device)
            if not started:
                with suppress(OutOfTime):
                    sessions.release_claim(claimant)

    def next_session(self, device: RegisteredDevice, before: DeviceSession, deadline: float) -> DeviceSession | None:
        """Wait for a device that restarts, and start the session after `before`. Return None if the time is over."""
        sessions = self._sessions(device)
        while True:
            state = sessions.read()
            if state.session and state.session.handshake != before.handshake:
                return state.session
            left = min(deadline - self._rpc.clock(), seconds_left()) - _MAX_POLL_SECONDS
            if left <= 0:
                return None
            if state.presence and state.presence.connected and not state.ready:
                with suppress(KhoError):  # it may have gone again
                    self.start_session(device, self._rpc.clock() + left)
            else:
                time.sleep(_MAX_POLL_SECONDS)

    def needs_renewal(self, device: RegisteredDevice, session: DeviceSession) -> bool:
        """Return True if the session's token for photos is old, and this process can give the device another."""
        is_old = bool(session.vision_hash) and now_ms() - session.started_at >= _RENEWAL_MS
        return is_old and self._vision(device) is not None

    def _has_session(self, device: RegisteredDevice, state: DeviceState, hello: DeviceHello | None) -> bool:
        session = state.session
        if session is None or not state.ready or self.needs_renewal(device, session):
            return False
        if hello is None or session.id == hello.session_id:
            return True
        if session.started_at < hello.at:
            return False
        # After its hello the device answered a handshake that its connect or a call had started.
        renamed = self._sessions(device).rename(session.id, hello.session_id)
        self._on_start(device)
        return renamed

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
        watch = partial(check_connection, self._table, device, presence, now_ms())
        result = self._rpc.request(device, session_id, "initialize", params, deadline=deadline, watch=watch)
        name, version = _identity(result)
        vision_hash = offer.token_hash if offer else ""
        session = DeviceSession(session_id, name, version, now_ms(), connection, handshake, vision_hash)
        # If the device cannot list its tools now, the session starts all the same; the first call reads the list.
        with suppress(ToolFailed):
            self._tool_lists.read(device, session, deadline)
        return session

    def _sessions(self, device: RegisteredDevice) -> SessionStore:
        return SessionStore(self._table, device.tenant_id, device.id)


def _identity(result: Any) -> tuple[str, str]:
    """Return the name and firmware version that a device reports."""
    info = result.get("serverInfo") if isinstance(result, dict) else None
    values = [info.get("name"), info.get("version")] if isinstance(info, dict) else [None, None]
    name, version = (encodable(each)[:_MAX_CHARACTERS] if isinstance(each, str) else "" for each in values)
    return name, version
