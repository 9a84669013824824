"""Where what is known of devices lies in the table; every key of a tenant's starts from it.

    pk                         sk                            item
    #owner#{device}            owner                         whose the device is
    {tenant}#devices           {device}                      a device: its name, its downlink, its password's hash
    {tenant}#device#{device}   presence                      whether it is connected, and since when
    {tenant}#device#{device}   session                       its session, and who is in the middle of a handshake
    {tenant}#device#{device}   catalogue#{version}#{part}    a part of the tools of one name and firmware version
    {tenant}#device#{device}   notification#{time}#{random}  what it told unasked, kept for a week

What connects is known by its device's id alone: it leads to the tenant. No tenant's name begins with '#', nor has one
in it; no device's id has one.
"""

from __future__ import annotations

import hashlib
from typing import Final

OWNER: Final = "owner"
PRESENCE: Final = "presence"
SESSION: Final = "session"
NOTIFICATION: Final = "notification#"
_CATALOGUE: Final = "catalogue#"


def owner(device_id: str) -> str:
    """The partition that says whose a device is."""
    return f"#owner#{device_id}"


def devices(tenant_id: str) -> str:
    """The partition of a tenant's devices."""
    return f"{tenant_id}#devices"


def device(tenant_id: str, device_id: str) -> str:
    """The partition of what a device does and says."""
    return f"{tenant_id}#device#{device_id}"


def catalogue(name: str, version: str) -> str:
    """What the sort keys of a catalogue's parts begin with; the name and the version are the device's own words."""
    return f"{_CATALOGUE}{hashlib.sha256(f'{len(name)}#{name}#{version}'.encode()).hexdigest()}#"


def notification(at: str, random: str) -> str:
    """The sort key of a notification."""
    return f"{NOTIFICATION}{at}#{random}"
