"""The boards of the three simulated devices that every tenant of one machine can connect: lamp, thermostat, camera."""

from __future__ import annotations

import base64
import struct
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from infra.local.iot.simulator.tools import CameraImage, SimulatedTool, ToolArgument, owner_tools

if TYPE_CHECKING:
    from collections.abc import Callable

    from infra.local.iot.simulator.tools import State, Value

_WIDTH: Final = 240
_HEIGHT: Final = 160


@dataclass(frozen=True, slots=True)
class SampleBoard:
    """One kind of board: the name of its device, and its tools."""

    name: str
    tools: Callable[[], list[SimulatedTool]]


def _setting(name: str, description: str, argument: ToolArgument) -> SimulatedTool:
    """Return a tool that sets one value and sends a notification of it."""

    def run(state: State, arguments: dict[str, Value]) -> Value:
        state[argument.name] = arguments[argument.name]
        return True

    return SimulatedTool(name, description, run, (argument,), notifies=True)


def _status(**initial: Value) -> SimulatedTool:
    def run(state: State, _: dict[str, Value]) -> dict[str, Any]:
        return initial | {name: value for name, value in state.items() if name in initial}

    return SimulatedTool("self.get_device_status", "The present state of the device.", run)


def _lamp() -> list[SimulatedTool]:
    return [
        _status(on=False, brightness=60, color="warm"),
        _setting("self.lamp.set_power", "Switch the lamp on or off.", ToolArgument("on", "boolean")),
        _setting(
            "self.lamp.set_brightness",
            "Set the brightness of the lamp in percent.",
            ToolArgument("brightness", "integer", default=60, minimum=0, maximum=100),
        ),
        _setting(
            "self.lamp.set_color",
            "Set the colour of the light.",
            ToolArgument("color", "string", default="warm", choices=("warm", "neutral", "cold")),
        ),
        *owner_tools(),
    ]


def _thermostat() -> list[SimulatedTool]:
    return [
        _status(temperature=19, target=21, mode="heat", text=""),
        _setting(
            "self.thermostat.set_target",
            "Set the temperature to reach, in degrees Celsius.",
            ToolArgument("target", "integer", default=21, minimum=5, maximum=30),
        ),
        _setting(
            "self.thermostat.set_mode",
            "Choose what the thermostat does.",
            ToolArgument("mode", "string", default="heat", choices=("off", "heat", "cool")),
        ),
        _setting("self.screen.show_text", "Show a text on the small screen.", ToolArgument("text", "string")),
        *owner_tools(),
    ]


def _camera() -> list[SimulatedTool]:
    return [
        _status(flash=False),
        SimulatedTool("self.camera.take_photo", "Take a photo and answer with it.", _take_photo),
        _setting("self.camera.set_flash", "Use the flash, or not.", ToolArgument("flash", "boolean")),
        *owner_tools(),
    ]


BOARDS: Final = {
    "lamp": SampleBoard("Desk lamp", _lamp),
    "thermostat": SampleBoard("Thermostat", _thermostat),
    "camera": SampleBoard("Porch camera", _camera),
}


def _take_photo(state: State, _: dict[str, Value]) -> CameraImage:
    photo = _landscape(bright=bool(state.get("flash")))
    return CameraImage("image/png", base64.b64encode(photo).decode("ascii"))


def _landscape(*, bright: bool) -> bytes:
    """Draw a PNG of a sun over hills, brighter with the flash."""
    light = 1.0 if bright else 0.6
    rows = bytearray()
    for y in range(_HEIGHT):
        rows.append(0)  # a row without a filter
        for x in range(_WIDTH):
            rows += bytes(int(part * light) for part in _pixel(x, y))
    header = struct.pack(">IIBBBBB", _WIDTH, _HEIGHT, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(bytes(rows), 9)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in chunks)


def _pixel(x: int, y: int) -> tuple[int, int, int]:
    if (x - 170) ** 2 + (y - 45) ** 2 < 22**2:
        return 255, 214, 92
    hill = 105 + (x - 70) ** 2 // 220
    if y > hill:
        return 74, 122, 68
    return 120 + y // 2, 170 + y // 3, 235


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
