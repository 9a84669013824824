"""The tools of a simulated device, described and paged as the firmware does."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Value = bool | int | str
    State = dict[str, Any]

_PAGE_BYTES: Final = 8_000
_PAGE_MARGIN: Final = 30


class SimulatedToolError(Exception):
    """A tool's own error."""


class DeviceRestart(Exception):
    """The tool restarts the device, so that it never replies; `upgraded` if it installed other firmware."""

    def __init__(self, *, upgraded: bool = False) -> None:
        super().__init__("the device restarts")
        self.upgraded = upgraded


@dataclass(frozen=True, slots=True)
class CameraImage:
    """A camera's image."""

    mime_type: str
    data: str


@dataclass(frozen=True, slots=True)
class RawResult:
    """A whole result, as firmware of its own may send it."""

    result: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ToolArgument:
    """One argument of a tool."""

    name: str
    kind: str
    default: Value | None = None
    minimum: int | None = None
    maximum: int | None = None
    choices: tuple[Value, ...] | None = None

    def schema(self) -> dict[str, Any]:
        """Return the argument's JSON schema."""
        limits = {"default": self.default, "minimum": self.minimum, "maximum": self.maximum, "enum": self.choices}
        return {"type": self.kind} | {name: value for name, value in limits.items() if value is not None}


@dataclass(frozen=True, slots=True)
class SimulatedTool:
    """One tool: its description, its implementation, and the seconds that a call takes."""

    name: str
    description: str
    run: Callable[[State, dict[str, Value]], Value | CameraImage | RawResult | dict[str, Any]]
    arguments: tuple[ToolArgument, ...] = ()
    user_only: bool = False
    notifies: bool = False
    """True if the device sends a notification with the arguments of each call that succeeded."""
    seconds: Callable[[dict[str, Value]], float] = field(default=lambda _: 0.0)
    blocks: bool = False
    """True if a call waits for another machine. It runs outside of the devices' thread."""

    def to_json(self) -> str:
        """Return the tool's JSON."""
        schema: dict[str, Any] = {
            "type": "object",
            "properties": {argument.name: argument.schema() for argument in self.arguments},
        }
        required = [argument.name for argument in self.arguments if argument.default is None]
        if required:
            schema["required"] = required
        return json.dumps(
            {"name": self.name, "description": self.description, "inputSchema": schema}, separators=(",", ":")
        )


def page(tools: Sequence[SimulatedTool], cursor: str, *, with_user_tools: bool) -> str:
    """Return one page of the list, starting at the cursor's tool. Raise SimulatedToolError if no tool fits."""
    parts: list[str] = []
    size, next_cursor = 10, ""
    started = not cursor
    for tool in tools:
        started = started or tool.name == cursor
        if not started or (tool.user_only and not with_user_tools):
            continue
        text = tool.to_json()
        if size + len(text.encode("utf-8")) + _PAGE_MARGIN > _PAGE_BYTES:
            next_cursor = tool.name
            break
        parts.append(text)
        size += len(text.encode("utf-8")) + 1
    if not parts and tools:
        raise SimulatedToolError(f"Failed to add tool {next_cursor} because of payload size limit")
    suffix = f',"nextCursor":{json.dumps(next_cursor)}' if next_cursor else ""
    return f'{{"tools":[{",".join(parts)}]{suffix}}}'


def _set(name: str) -> Callable[[State, dict[str, Value]], Value]:
    def run(state: State, arguments: dict[str, Value]) -> Value:
        state[name] = dict(arguments)
        return True

    return run


def _status(state: State, _: dict[str, Value]) -> dict[str, Any]:
    volume = state.get("self.audio_speaker.set_volume", {}).get("volume", 70)
    return {"audio_speaker": {"volume": volume}, "battery": {"level": 80, "charging": False}}


def _echo(_: State, arguments: dict[str, Value]) -> Value:
    return arguments["text"]


def _sleep(_: State, arguments: dict[str, Value]) -> Value:
    return arguments["milliseconds"]


def _fail(_: State, arguments: dict[str, Value]) -> Value:
    raise SimulatedToolError(str(arguments["message"]))


def _reboot(_state: State, _arguments: dict[str, Value]) -> Value:
    raise DeviceRestart


def _upgrade(_: State, arguments: dict[str, Value]) -> Value:
    """Restart with other firmware. Answer true where the download fails, as the firmware does."""
    parts = urlsplit(str(arguments["url"]))
    if parts.scheme in ("http", "https") and parts.hostname and not parts.hostname.endswith(".invalid"):
        raise DeviceRestart(upgraded=True)
    return True


def _photo(size: int) -> Callable[[State, dict[str, Value]], CameraImage]:
    return lambda _state, _arguments: CameraImage("image/jpeg", "/9j/" + "A" * (size // 4 * 4))


def standard_tools(*, photo_bytes: int = 4_000) -> list[SimulatedTool]:
    """Return 51 tools, which make five pages, and two user-only tools."""
    first = [
        SimulatedTool(
            "self.get_device_status",
            "The real-time state of the device: speaker, screen, battery, network. Use it before changing anything.",
            _status,
        ),
        SimulatedTool(
            "self.audio_speaker.set_volume",
            "Set the volume of the speaker. If the present volume is not known, call `self.get_device_status` first.",
            _set("self.audio_speaker.set_volume"),
            (_percent("volume"),),
        ),
        SimulatedTool(
            "self.screen.set_brightness",
            "Set the brightness of the screen.",
            _set("self.screen.set_brightness"),
            (_percent("brightness"),),
        ),
        SimulatedTool(
            "self.screen.set_theme",
            "Set the theme of the screen: `light` or `dark`.",
            _set("self.screen.set_theme"),
            (ToolArgument("theme", "string"),),
        ),
        SimulatedTool(
            "self.camera.take_photo",
            "Take a photo and answer with it.",
            _photo(photo_bytes),
            (ToolArgument("question", "string", default=""),),
        ),
        SimulatedTool(
            "self.test.echo", "Answer with the text that is given.", _echo, (ToolArgument("text", "string"),)
        ),
        SimulatedTool(
            "self.test.sleep",
            "Answer after some milliseconds with their number.",
            _sleep,
            (ToolArgument("milliseconds", "integer", default=1500, minimum=0, maximum=60_000),),
            seconds=lambda arguments: int(arguments["milliseconds"]) / 1000,
        ),
        SimulatedTool(
            "self.test.fail",
            "Fail with the message that is given.",
            _fail,
            (ToolArgument("message", "string", default='the sensor says "no"\nand nothing else'),),
        ),
    ]
    relays = [_relay(number) for number in range(1, 52 - len(first))]
    return [*first, *relays, *owner_tools()]


def owner_tools() -> list[SimulatedTool]:
    """Return the user-only tools: restart and update."""
    return [
        SimulatedTool("self.reboot", "Restart the device.", _reboot, user_only=True),
        SimulatedTool(
            "self.upgrade_firmware",
            "Install the firmware that is found at the URL.",
            _upgrade,
            (ToolArgument("url", "string", default="The URL of the firmware binary file to download and install"),),
            user_only=True,
        ),
    ]


def _percent(name: str) -> ToolArgument:
    return ToolArgument(name, "integer", minimum=0, maximum=100)


def _relay(number: int) -> SimulatedTool:
    name = f"self.relay_{number:02}.set"
    description = (
        f"Switch relay {number} of the board on or off, at once or after a delay, for good or for a time. "
        "The relay keeps its state over a restart unless `keep` is false. Use it for lamps, fans, pumps and locks that "
        "the user has named to be on this relay; ask back where the user has not. Never switch a lock without being "
        "told to by the user in the present conversation. Answers true once the relay has switched. "
    )
    return SimulatedTool(
        name,
        description,
        _set(name),
        (
            ToolArgument("on", "boolean"),
            ToolArgument("delay_seconds", "integer", default=0, minimum=0, maximum=86_400),
            ToolArgument("for_seconds", "integer", default=0, minimum=0, maximum=86_400),
            ToolArgument("keep", "boolean", default=True),
        ),
    )


def big_tool() -> SimulatedTool:
    """Return a tool that fits on no page."""
    return SimulatedTool("self.manual.read", "The manual of the device. " * 350, _set("self.manual.read"))


def colliding_tools() -> list[SimulatedTool]:
    """Return tools whose names differ only in characters that other protocols do not allow."""
    names = ("self.light.turn_on", "self.light-turn_on", "self_light_turn_on", "self.light.turn on")
    return [SimulatedTool(name, f"Turn the light on, by way of {name}.", _set(name)) for name in names]
