"""One simulated device: its connection, the envelope, the hello, and faults in its replies."""

from __future__ import annotations

import asyncio
import json
import random
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from infra.local.iot.mqtt.client import ConnectRefused, MqttClient
from infra.local.iot.mqtt.packets import Connect
from infra.local.iot.simulator.board_http import FirmwareHang
from infra.local.iot.simulator.camera import TOOL_NAME
from infra.local.iot.simulator.firmware import Firmware, FirmwareCall, FirmwareReply
from infra.local.iot.simulator.garbage import garbage
from infra.local.iot.simulator.quirks import FIRMWARE, Quirk
from infra.local.iot.simulator.tools import DeviceRestart, big_tool, colliding_tools, standard_tools

if TYPE_CHECKING:
    from collections.abc import Callable

    from infra.local.iot.simulator.camera import Camera
    from infra.local.iot.simulator.tools import SimulatedTool

_HELLO_SLACK_SECONDS: Final = 0.01
_FLOOD_INTERVAL_SECONDS: Final = 0.01
_FLOOD_MESSAGES: Final = 10


@dataclass(frozen=True, slots=True)
class DeviceAlert:
    """A text that a device shows with a sound."""

    status: str
    message: str
    emotion: str


@dataclass(frozen=True, slots=True)
class DeviceModel:
    """The properties that the devices of a fleet share."""

    quirks: frozenset[Quirk] = FIRMWARE
    board: str = "simulated-esp32"
    version: str = "2.4.0"
    tools: list[SimulatedTool] | None = None
    keepalive: int = 240
    reconnect_seconds: tuple[float, float] = (10.0, 60.0)
    connect_seconds: float = 10.0
    """The time to wait for the broker's CONNACK."""
    hello_seconds: float = 10.0
    """The time for which an unanswered hello blocks other messages."""
    reorder_seconds: float = 0.05
    """The time for which replies are held back before they are sent in reverse order."""
    late_seconds: float = 30.0
    user_name: str | None = None
    """If only a password is set, each device uses its own id."""
    password: bytes | None = None
    camera: Camera | None = None
    """Without one, a photo is the tool's result."""
    show_alert: Callable[[str, DeviceAlert], None] = lambda _device_id, _alert: None

    def create_tools(self) -> list[SimulatedTool]:
        """Return the tools of one device."""
        if self.tools is not None:
            return list(self.tools)
        large, oversize = Quirk.LARGE_IMAGES in self.quirks, Quirk.OVERSIZE_IMAGES in self.quirks
        tools = standard_tools(photo_bytes=140_000 if oversize else 110_000 if large else 4_000)
        if Quirk.COLLIDING_NAMES in self.quirks:
            tools += colliding_tools()
        if Quirk.BIG_TOOL in self.quirks:
            tools.insert(10, big_tool())
        return tools


@dataclass(slots=True)
class DeviceCounters:
    """A device's counters."""

    connections: int = 0
    received: int = 0
    dropped: int = 0
    """Messages that were not understood or silently dropped."""
    sent: int = 0
    hellos_accepted: int = 0
    hellos_ignored: int = 0


@dataclass(eq=False)
class SimulatedDevice:
    """A device that connects, answers, and reconnects after a loss."""

    device_id: str
    model: DeviceModel = field(default_factory=DeviceModel)

    def __post_init__(self) -> None:
        self.quirks = set(self.model.quirks)
        self.firmware = Firmware(self.model.board, self.model.version, self.model.create_tools(), self.quirks)
        camera = self.model.camera
        if camera:
            tool = camera.tool(lambda: self.firmware.vision)
            self.firmware.tools = [tool if each.name == TOOL_NAME else each for each in self.firmware.tools]
        self.counters = DeviceCounters()
        self.alerts: list[DeviceAlert] = []
        self.hangs = False
        """True after an answer at which the firmware hangs: its network works on, and nothing else does."""
        self.next_version = ""
        """The version that an update installs; by default the one that follows."""
        self.next_tools: list[SimulatedTool] | None = None
        self.session_id = ""
        self.audio_open = False
        self._loop = asyncio.get_running_loop()
        self._publish_topic = f"devices/{self.device_id}/up"
        self._client: MqttClient | None = None
        self._queue: deque[FirmwareCall] = deque()
        self._running: tuple[asyncio.TimerHandle | asyncio.Future[FirmwareReply], FirmwareCall] | None = None
        self._held_back: list[str] = []
        self._blocked_until = 0.0
        self._blocked: list[bytes] = []
        self._stopped = False
        self._lost = asyncio.Event()

    @property
    def connected(self) -> bool:
        """True while the broker accepts the connection."""
        return self._client is not None and self._client.connected

    async def connect(self, host: str, port: int) -> None:
        """Connect once. Raise OSError, TimeoutError or ConnectRefused."""
        model = self.model
        user_name = model.user_name or (self.device_id if model.password else None)
        packet = Connect(self.device_id, keepalive=model.keepalive, user_name=user_name, password=model.password)
        self._lost.clear()

        def new_client() -> MqttClient:
            client = MqttClient(packet, self._on_message, lambda: self._on_lost(client))
            return client

        _, client = await self._loop.create_connection(new_client, host, port)
        self._client = client
        try:
            await client.wait_accepted(model.connect_seconds)
        except TimeoutError:
            client.abort()  # a late CONNACK would collide with the next attempt
            raise
        self.counters.connections += 1
        self._on_connected(client)

    async def run(self, host: str, port: int) -> None:
        """Stay connected until stopped, and reconnect with the delay of real devices."""
        while True:
            if self.connected:
                await self._lost.wait()
            if self._stopped:
                return
            await asyncio.sleep(random.uniform(*self.model.reconnect_seconds))  # noqa: S311 - no secret
            try:
                await self.connect(host, port)
            except (OSError, TimeoutError, ConnectRefused):
                continue

    def stop(self) -> None:
        """Disconnect permanently."""
        self._stopped = True
        self._lost.set()
        if self._client:
            self._client.disconnect()

    def vanish(self) -> None:
        """Drop the connection without a DISCONNECT."""
        if self._client:
            self._client.abort()

    def notify(self, method: str, **params: Any) -> None:
        """Send a notification."""
        self._send(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}))

    def install(self, version: str, tools: list[SimulatedTool] | None = None) -> None:
        """Install firmware of this version, with these tools; by default with the same ones."""
        self.firmware.version = version
        if tools is not None:
            self.firmware.tools = tools

    def restart(self) -> None:
        """Restart: disconnect, forget all calls, and connect again after the delay of a reconnect."""
        self._forget()
        if self._running:
            self._running[0].cancel()
            self._running = None
        self.session_id, self.audio_open, self._blocked_until = "", False, 0.0
        if self._client:
            self._client.disconnect()

    def finish(self) -> None:
        """Finish the running call now, without waiting for the time that its tool takes."""
        if self._running and isinstance(self._running[0], asyncio.TimerHandle):
            timer, call = self._running
            timer.cancel()
            self._finish(call)

    def release(self) -> None:
        """Send the replies that are held back, in reverse order."""
        replies, self._held_back = self._held_back, []
        for text in reversed(replies):
            self._send(text)

    def hello(self) -> None:
        """Open an audio channel."""
        hello = {
            "type": "hello",
            "version": 3,
            "features": {"mcp": True},
            "transport": "udp",
            "audio_params": {"format": "opus", "sample_rate": 16000, "channels": 1, "frame_duration": 60},
        }
        self._blocked_until = self._loop.time() + self.model.hello_seconds
        self._publish(json.dumps(hello).encode())

    def _on_connected(self, client: MqttClient) -> None:
        if Quirk.SUBSCRIBES in self.quirks:
            client.subscribe(f"devices/{self.device_id}/down")
        if Quirk.HELLO in self.quirks:
            self.hello()
        if Quirk.TRESPASSES in self.quirks:
            client.publish(f"devices/not-{self.device_id}/up", b"{}")
        if Quirk.FLOOD in self.quirks:
            self._flood(client)
        if Quirk.NOTIFIES in self.quirks:
            self._notify_each_second(client)

    def _on_lost(self, client: MqttClient) -> None:
        if client is not self._client:
            return
        self._forget()
        self._lost.set()

    def _forget(self) -> None:
        self._queue.clear()
        self._held_back.clear()
        self._blocked.clear()

    def _on_message(self, _topic: str, payload: bytes) -> None:
        self.counters.received += 1
        try:
            message = json.loads(payload)
        except (ValueError, RecursionError):
            message = None
        if self.hangs or not isinstance(message, dict):
            self.counters.dropped += 1
        elif message.get("type") == "hello":
            self._handle_hello(message)
        elif message.get("type") == "goodbye":
            self._handle_goodbye(message)
        elif message.get("type") == "mcp":
            self._handle_rpc(message.get("payload"))
        elif message.get("type") == "alert":
            self._handle_alert(message)
        else:
            self.counters.dropped += 1

    def _handle_alert(self, message: dict[str, Any]) -> None:
        """Show an alert. The firmware drops one without all of its texts."""
        texts = [message.get(name) for name in ("status", "message", "emotion")]
        status, text, emotion = (each.partition("\0")[0] if isinstance(each, str) else None for each in texts)
        if status is None or text is None or emotion is None:
            self.counters.dropped += 1
            return
        self.alerts.append(DeviceAlert(status, text, emotion))
        self.model.show_alert(self.device_id, self.alerts[-1])

    def _handle_hello(self, message: dict[str, Any]) -> None:
        udp, session_id = message.get("udp"), message.get("session_id")
        fields = [udp.get(name) for name in ("server", "port", "key", "nonce")] if isinstance(udp, dict) else [None]
        if message.get("transport") != "udp" or not isinstance(session_id, str) or None in fields:
            self.counters.hellos_ignored += 1
            return
        self.counters.hellos_accepted += 1
        self.session_id = session_id
        self.audio_open = True
        self._blocked_until = 0.0
        self._send_blocked()

    def _handle_goodbye(self, message: dict[str, Any]) -> None:
        if message.get("session_id") in (None, self.session_id):
            self.audio_open = False

    def _handle_rpc(self, payload: Any) -> None:
        action = self.firmware.handle(payload)
        match action:
            case FirmwareReply():
                self._reply(action.text)
            case FirmwareCall() if Quirk.VANISH in self.quirks:
                self.vanish()
            case FirmwareCall() if action.tool.blocks or Quirk.ONE_AT_A_TIME in self.quirks:
                self._queue.append(action)
                self._run_queued()
            case FirmwareCall():
                self._loop.call_later(action.tool.seconds(action.arguments), self._finish, action)
            case None:
                self.counters.dropped += 1

    def _run_queued(self) -> None:
        """Run the queued calls, one after the other."""
        while self._queue and not self._running:
            call = self._queue.popleft()
            if call.tool.blocks:
                waiting = self._loop.run_in_executor(None, self.firmware.run, call)
                self._running = waiting, call
                waiting.add_done_callback(self._finish_waiting)
                return
            seconds = call.tool.seconds(call.arguments)
            if seconds:
                self._running = self._loop.call_later(seconds, self._finish, call), call
                return
            self._finish(call)

    def _finish(self, call: FirmwareCall) -> None:
        self._running = None
        try:
            reply = self.firmware.run(call).text
        except DeviceRestart as restart:
            if restart.upgraded:
                self.install(self.next_version or _next_version(self.firmware.version), self.next_tools)
            self.restart()
            return
        self._send_result(call, reply)

    def _finish_waiting(self, waiting: asyncio.Future[FirmwareReply]) -> None:
        """Send the result of a call that waited for another machine, unless the device restarted meanwhile."""
        if waiting.cancelled() or not self._running or self._running[0] is not waiting:
            return
        call = self._running[1]
        failure = waiting.exception()
        if isinstance(failure, FirmwareHang):
            self.hangs = True
            return
        self._running = None
        self._send_result(call, waiting.result().text)

    def _send_result(self, call: FirmwareCall, reply: str) -> None:
        if Quirk.NEVER not in self.quirks:
            self._reply(reply)
        if call.tool.notifies:
            self.notify("notifications/state_changed", **call.arguments)
        self._run_queued()

    def _reply(self, text: str) -> None:
        """Send a reply, with the faults of the device's quirks."""
        if Quirk.NEVER_AT_ALL in self.quirks:
            return
        if Quirk.STRANGE_IDS in self.quirks:
            text = text.replace('"id":', '"id":7', 1)
        if Quirk.BROKEN_JSON in self.quirks:
            text = text[: len(text) // 2]
        if Quirk.LATE in self.quirks:
            self._loop.call_later(self.model.late_seconds, self._send, text)
        elif Quirk.OUT_OF_ORDER in self.quirks:
            if not self._held_back:
                self._loop.call_later(self.model.reorder_seconds, self.release)
            self._held_back.append(text)
        else:
            self._send(text)
        if Quirk.DOUBLED in self.quirks:
            self._send(text)

    def _send(self, payload: str) -> None:
        session = "" if Quirk.EMPTY_SESSION in self.quirks else self.session_id
        envelope = f'{{"session_id":{json.dumps(session)},"type":"mcp","payload":{payload}}}'.encode()
        blocked_seconds = self._blocked_until - self._loop.time()
        if blocked_seconds > 0:
            self._blocked.append(envelope)
            self._loop.call_later(blocked_seconds, self._send_blocked)
        else:
            self._publish(envelope)

    def _send_blocked(self) -> None:
        """Send the messages that waited for the reply to a hello."""
        if self._blocked_until - self._loop.time() < _HELLO_SLACK_SECONDS:
            envelopes, self._blocked = self._blocked, []
            for envelope in envelopes:
                self._publish(envelope)

    def _publish(self, payload: bytes) -> None:
        if self._client and self._client.connected:
            self.counters.sent += 1
            self._client.publish(self._publish_topic, payload)

    def _flood(self, client: MqttClient) -> None:
        if client is not self._client or not client.connected:
            return
        for _ in range(_FLOOD_MESSAGES):
            self._publish(garbage())
        self._loop.call_later(_FLOOD_INTERVAL_SECONDS, self._flood, client)

    def _notify_each_second(self, client: MqttClient) -> None:
        if client is not self._client or not client.connected:
            return
        self.notify("notifications/state_changed", newState="idle", oldState="connecting")
        self._loop.call_later(1.0, self._notify_each_second, client)


def _next_version(version: str) -> str:
    first, _, last = version.rpartition(".")
    return f"{first}.{int(last) + 1}"
