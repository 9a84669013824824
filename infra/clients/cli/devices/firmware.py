"""`kho devices firmware`: the firmware that a tenant's boards are offered."""

import json
from functools import partial
from typing import Final

from cyclopts import App

from infra.clients.agent.backend import read_pages
from infra.clients.cli.devices.client import DEFAULT_TARGET, DeviceTarget, open_client
from infra.clients.cli.target import AsJson
from infra.clients.cli.text_table import format_table

firmware: Final = App(name="firmware", help="Firmware that a tenant's boards are offered at each check-in.")

_COLUMNS: Final = ("board", "version", "url", "set_at", "failed_devices")


@firmware.command(name="set")
def set_(
    board: str, version: str, url: str, /, *, target: DeviceTarget = DEFAULT_TARGET, as_json: AsJson = False
) -> None:
    """Offer firmware to the tenant's boards of a kind, at each check-in while theirs is older.

    Args:
        board: The kind of board, as 'kho devices list' shows it, such as bread-compact-wifi.
        version: The version that the firmware says of itself: digits and dots.
        url: The https:// address of the application's image, or /firmware/NAME for a file in 'firmware' of the data
            folder.
    """
    with open_client(target) as client:
        release = client.call("firmware/set", {"board": board, "version": version, "url": url})
    text = f"Boards {release['board']} with firmware before {release['version']} are offered it at their next start."
    print(json.dumps(release) if as_json else text)


@firmware.command(name="list")
def list_(*, target: DeviceTarget = DEFAULT_TARGET, as_json: AsJson = False) -> None:
    """List the firmware that boards are offered, and the boards that failed three times to install it."""
    with open_client(target) as client:
        pages = list(read_pages(partial(client.call, "firmware/list"), {"limit": 1000}))
    releases = [each for page in pages for each in page["firmware"]]
    if as_json:
        print(json.dumps({"firmware": releases}))
        return
    rows = (each | {"failed_devices": " ".join(each["failed_devices"]) or "-"} for each in releases)
    print(format_table(_COLUMNS, (tuple(each[column] for column in _COLUMNS) for each in rows)))


@firmware.command
def delete(board: str, /, *, target: DeviceTarget = DEFAULT_TARGET, as_json: AsJson = False) -> None:
    """Stop to offer firmware to boards of a kind.

    Args:
        board: The kind of board, from 'kho devices firmware list'.
    """
    with open_client(target) as client:
        release = client.call("firmware/delete", {"board": board})
    text = f"Boards {release['board']} are no longer offered firmware {release['version']}."
    print(json.dumps(release) if as_json else text)
