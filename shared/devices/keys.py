"""Keys of the devices table; every key of a tenant's items starts with the tenant.

    pk                         sk                            item
    #owner#{device}            owner                         the device's tenant
    #webhooks                  {tenant}                      a tenant whose events wait, and the state of their delivery
    {tenant}#devices           {device}                      a device: its name, its downlink, its password's hash or,
                                                             of a claimed board, the hash of its pair
    {tenant}#device#{device}   presence                      connection state, and the time of its last change
    {tenant}#device#{device}   session                       its session, with the hash of its token for photos, and the
                                                             claim of a handshake in progress
    {tenant}#device#{device}   catalogue#{version}#{part}    a part of the tools, as read in the latest session
    {tenant}#device#{device}   notification#{time}#{place}   a notification, kept for a week
    {tenant}#firmware          {board}                       the firmware that boards of a kind are offered
    {tenant}#updates#{board}   {device}                      a board that was offered it, and how often
    {tenant}#webhook           webhook                       the address to which events of devices are sent
    {tenant}#webhook           status                        failures of their delivery
    {tenant}#webhook           waiting#{device}              a device whose events wait
    {tenant}#outbox#{device}   event#{time}#{place}          an event that waits
    #board#{device}            code                          a board that waits to be claimed, and its code
    #code#{slot}               code                          the same board, by its code
    #waiting#{source}          {slot}                        the same board, by the address that it checked in from

A connecting device is identified by its id alone, which leads to its tenant. Neither tenant names nor device ids
contain '#'.
"""

import hashlib
from typing import Final

OWNER: Final = "owner"
PRESENCE: Final = "presence"
SESSION: Final = "session"
NOTIFICATION: Final = "notification#"
WEBHOOK: Final = "webhook"
WEBHOOK_STATUS: Final = "status"
WAITING: Final = "waiting#"
EVENT: Final = "event#"
WEBHOOKS: Final = "#webhooks"
"""The partition of the tenants whose events wait."""
_CODE: Final = "code"
_CATALOGUE: Final = "catalogue#"


def owner(device_id: str) -> str:
    """Return the partition that maps a device to its tenant."""
    return f"#owner#{device_id}"


def devices(tenant_id: str) -> str:
    """Return the partition of a tenant's devices."""
    return f"{tenant_id}#devices"


def device(tenant_id: str, device_id: str) -> str:
    """Return the partition of a device's state and messages."""
    return f"{tenant_id}#device#{device_id}"


def firmware(tenant_id: str) -> str:
    """Return the partition of the firmware that a tenant's boards are offered."""
    return f"{tenant_id}#firmware"


def updates(tenant_id: str, board: str) -> str:
    """Return the partition of the boards of a kind that were offered firmware."""
    return f"{tenant_id}#updates#{board}"


def webhook(tenant_id: str) -> str:
    """Return the partition of a tenant's webhook and of the devices whose events wait."""
    return f"{tenant_id}#webhook"


def outbox(tenant_id: str, device_id: str) -> str:
    """Return the partition of the events of a device that wait to be delivered."""
    return f"{tenant_id}#outbox#{device_id}"


def outbox_of(partition: str) -> tuple[str, str]:
    """Return the tenant and the device of an outbox."""
    tenant_id, _, device_id = partition.split("#", 2)
    return tenant_id, device_id


def event(at: str, place: str) -> str:
    """Return the sort key of an event that waits: its time, and its place in that millisecond."""
    return f"{EVENT}{at}#{place}"


def waiting_board(device_id: str) -> tuple[str, str]:
    """Return the key of a board that waits to be claimed."""
    return f"#board#{device_id}", _CODE


def code_slot(slot: int) -> tuple[str, str]:
    """Return the key of an activation code."""
    return f"#code#{slot}", _CODE


def address_slot(source: str, slot: int) -> tuple[str, str]:
    """Return the key of a waiting board among those of one address, which is hashed."""
    return f"#waiting#{source}", f"{slot:04}"


def catalogue(name: str, version: str) -> str:
    """Return the sort-key prefix of a catalogue's parts. Name and version are the device's own."""
    return f"{_CATALOGUE}{hashlib.sha256(f'{len(name)}#{name}#{version}'.encode()).hexdigest()}#"


def notification(at: str, place: str) -> str:
    """Return the sort key of a notification: its time, and what orders and tells apart those of one millisecond."""
    return f"{NOTIFICATION}{at}#{place}"
