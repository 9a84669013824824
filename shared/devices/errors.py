"""Why a device did not do what it was asked to, in words that say whether it may have."""

from __future__ import annotations

from typing import Final

from shared.rpc.error_template import ErrorTemplate
from shared.rpc.errors import Conflict, OutOfTime, ToolFailed, Unavailable

DEVICE_ERROR: Final = "DEVICE_ERROR"
_DEVICE_TIMEOUT: Final = "DEVICE_TIMEOUT"
_LOOK: Final = "Ask for the device's state before you call again: what was sent is never sent twice."
_ABOUT: Final = ("device_id",)

offline = ErrorTemplate(
    Unavailable,
    "DEVICE_OFFLINE",
    "The device is not connected; nothing was sent to it.",
    "It connects by itself once it has power and a network; 'devices/get' tells whether it has.",
    _ABOUT,
    always={"sent": False},
)
not_ready = ErrorTemplate(
    OutOfTime,
    _DEVICE_TIMEOUT,
    "The device did not answer the handshake in time; the call was not sent.",
    "Nothing was done. The device may be busy or far away: call again, with more time.",
    _ABOUT,
    always={"sent": False},
)
no_reply = ErrorTemplate(
    OutOfTime,
    _DEVICE_TIMEOUT,
    "The device did not answer within {waited_ms} ms; the call may have happened.",
    _LOOK,
    _ABOUT,
    always={"sent": True},
)
connection_lost = ErrorTemplate(
    OutOfTime,
    _DEVICE_TIMEOUT,
    "The device lost its connection before it answered; the call may have happened.",
    _LOOK,
    _ABOUT,
    always={"sent": True},
)
replaced = ErrorTemplate(
    Conflict,
    "SESSION_REPLACED",
    "The device has connected anew, so no answer can come; the call may have happened.",
    _LOOK,
    _ABOUT,
    always={"sent": True},
)
unreadable = ErrorTemplate(
    ToolFailed,
    "DEVICE_REPLY_UNREADABLE",
    "The device's answer cannot be read; the call has happened.",
    _LOOK,
    _ABOUT,
    always={"sent": True},
)
device_error = ErrorTemplate(
    ToolFailed,
    DEVICE_ERROR,
    "{message}",
    "The device has refused this or could not do it, in its own words; 'tools/list' shows what it takes.",
    ("code",),
)
tool_undescribed = ErrorTemplate(
    ToolFailed,
    "TOOL_UNDESCRIBED",
    "The device describes this tool's arguments in a way that cannot be read; nothing was sent.",
    "Its firmware needs a correction.",
    ("tool",),
)
