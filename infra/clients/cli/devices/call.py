"""`kho devices list`, `call` and `watch`."""

import json
import signal
import sys
import threading
from typing import Annotated, Any, Final

from cyclopts import Parameter
from cyclopts.validators import Number

from infra.clients.cli.devices.client import DEFAULT_TARGET, DeviceTarget, has_broker, open_client
from infra.clients.cli.devices.watch import DeviceWatcher, list_devices
from infra.clients.cli.target import AsJson, exit_with_error
from infra.clients.cli.text_table import format_table

_POLL_SECONDS: Final = 1.0
_COLUMNS: Final = ("device_id", "name", "downlink", "connected", "changed_at", "last_answered_at", "board", "firmware")


def list_(*, target: DeviceTarget = DEFAULT_TARGET, as_json: AsJson = False) -> None:
    """List a tenant's devices and their connection state."""
    with open_client(target) as client:
        devices = list_devices(client)
    if not has_broker(target):
        devices = [each | {"connected": False} for each in devices]
    if as_json:
        print(json.dumps({"devices": devices}))
        return
    print(format_table(_COLUMNS, (tuple(_cell(each.get(column)) for column in _COLUMNS) for each in devices)))


def call(
    device_id: str,
    tool: str,
    /,
    *arguments: str,
    timeout_ms: Annotated[int, Parameter(validator=Number(gte=1, lte=25_000))] = 10_000,
    target: DeviceTarget = DEFAULT_TARGET,
    as_json: AsJson = False,
) -> None:
    """Run one of a device's tools and print the result.

    Args:
        device_id: The device, from 'kho devices list'.
        tool: The tool's name, such as self.audio_speaker.set_volume.
        arguments: The tool's arguments as name=value. A value that is valid JSON is parsed, any other is text.
        timeout_ms: The time to wait for the reply.
    """
    values = dict(_argument(each) for each in arguments)
    params = {"device_id": device_id, "name": tool, "arguments": values, "timeout_ms": timeout_ms}
    with open_client(target) as client:
        result = client.call("tools/call", params)
    if as_json:
        print(json.dumps(result))
    else:
        for part in result["content"]:
            print(part["text"] if part["type"] == "text" else _description(part))
    if result["isError"]:
        sys.exit(1)


def watch(
    device_id: str = "",
    /,
    *,
    target: DeviceTarget = DEFAULT_TARGET,
    as_json: Annotated[AsJson, Parameter(help="Print one JSON object per line.")] = False,
) -> None:
    """Follow devices until Ctrl-C: connections, sessions and notifications.

    Args:
        device_id: One device; by default all of the tenant's.
    """
    if not has_broker(target):
        exit_with_error(
            "no 'kho serve' uses this data folder, so no device is connected. Start it, or pass an --endpoint."
        )
    # A shell starts background commands with SIGINT ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    pause = threading.Event()
    with open_client(target) as client:
        watcher = DeviceWatcher(client, device_id)
        print("Press Ctrl-C to stop.", file=sys.stderr, flush=True)
        try:
            while not pause.wait(_POLL_SECONDS):
                for event in watcher.poll():
                    print(json.dumps(event.record()) if as_json else event.line(), flush=True)
        except KeyboardInterrupt:
            signal.signal(signal.SIGINT, signal.SIG_IGN)


def _argument(text: str) -> tuple[str, Any]:
    name, separator, value = text.partition("=")
    if not separator or not name:
        exit_with_error(f"'{text}' is not an argument; write name=value, such as volume=70.")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _description(part: dict[str, Any]) -> str:
    """Describe content that cannot be printed."""
    return f"[{part.get('mimeType', part['type'])}, {len(part.get('data', '')) * 3 // 4} bytes; --json prints it]"


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value) if value else "-"
