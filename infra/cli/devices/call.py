"""`kho devices list`, `call` and `watch`: what devices there are, what they can do, and what they tell."""

from __future__ import annotations

import json
import signal
import sys
import threading
from typing import Annotated, Any, Final

from cyclopts import Parameter
from cyclopts.validators import Number

from infra.cli.devices.client import DEFAULT_TARGET, DeviceTarget, has_broker, open_client
from infra.cli.devices.watch import DeviceWatcher, list_devices
from infra.cli.target import exit_with_error
from infra.cli.text_table import format_table

AsJson = Annotated[bool, Parameter(name="--json", negative=())]

_POLL_SECONDS: Final = 1.0
_SHOWN: Final = ("device_id", "name", "downlink", "connected", "changed_at", "board", "firmware")


def list_(*, where: DeviceTarget = DEFAULT_TARGET, as_json: AsJson = False) -> None:
    """List a tenant's devices, and which are connected.

    Parameters
    ----------
    as_json
        Print JSON.
    """
    with open_client(where) as ask:
        found = list_devices(ask)
    if not has_broker(where):
        found = [each | {"connected": False} for each in found]
    if as_json:
        print(json.dumps({"devices": found}))
        return
    print(format_table(_SHOWN, (tuple(_cell(each.get(column)) for column in _SHOWN) for each in found)))


def call(
    device_id: str,
    tool: str,
    /,
    *arguments: str,
    timeout_ms: Annotated[int, Parameter(validator=Number(gte=1, lte=25_000))] = 10_000,
    where: DeviceTarget = DEFAULT_TARGET,
    as_json: AsJson = False,
) -> None:
    """Have a device run one of its tools, and print what it answers.

    Parameters
    ----------
    device_id
        The device, from 'kho devices list'.
    tool
        The tool's name, such as self.audio_speaker.set_volume.
    arguments
        What it is given, each as name=value; a value that is JSON is taken as such, any other as text.
    timeout_ms
        How long to wait for the answer.
    as_json
        Print JSON.
    """
    given = dict(_argument(each) for each in arguments)
    with open_client(where) as ask:
        result = ask("tools/call", device_id=device_id, name=tool, arguments=given, timeout_ms=timeout_ms)
    if as_json:
        print(json.dumps(result))
    else:
        for part in result["content"]:
            print(part["text"] if part["type"] == "text" else _description(part))
    if result["isError"]:
        sys.exit(1)


def watch(device_id: str = "", /, *, where: DeviceTarget = DEFAULT_TARGET, as_json: AsJson = False) -> None:
    """Follow devices until Ctrl-C: who comes and goes, which sessions begin, what they notify of.

    Parameters
    ----------
    device_id
        One device; without, all of the tenant's.
    as_json
        Print one JSON object a line.
    """
    if not has_broker(where):
        exit_with_error(
            "no 'kho serve' uses this data folder, and so no device is connected. Start it, or give an --endpoint."
        )
    # A shell that starts a command in the background has it ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    pause = threading.Event()
    with open_client(where) as ask:
        watching = DeviceWatcher(ask, device_id)
        print("Ctrl-C ends this.", file=sys.stderr, flush=True)
        try:
            while not pause.wait(_POLL_SECONDS):
                for happened in watching.poll():
                    print(json.dumps(happened.record()) if as_json else happened.line(), flush=True)
        except KeyboardInterrupt:
            signal.signal(signal.SIGINT, signal.SIG_IGN)


def _argument(text: str) -> tuple[str, Any]:
    name, separator, value = text.partition("=")
    if not separator or not name:
        exit_with_error(f"'{text}' is no argument; one is name=value, such as volume=70.")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _description(part: dict[str, Any]) -> str:
    """What cannot be printed, in words."""
    return f"[{part.get('mimeType', part['type'])}, {len(part.get('data', '')) * 3 // 4} bytes; --json prints it]"


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value) if value else "-"
