"""Why a device did not do what it was asked to, in words that say whether it may have."""

from __future__ import annotations

from typing import Final

from shared.rpc.errors import Conflict, OutOfTime, ToolFailed, Unavailable

DEVICE_ERROR: Final = "DEVICE_ERROR"
_LOOK: Final = "Ask for the device's state before you call again: what was sent is never sent twice."
_NOT_SENT: Final = "Nothing was done. The device may be busy or far away: call again, with more time."


def offline(device_id: str) -> Unavailable:
    """The device is not connected, and nothing was sent."""
    return Unavailable(
        "The device is not connected; nothing was sent to it.",
        details={"device_id": device_id, "sent": False},
        guidance="It connects by itself once it has power and a network; 'devices/get' tells whether it has.",
        code="DEVICE_OFFLINE",
    )


def no_reply(device_id: str, waited_ms: int) -> OutOfTime:
    """The call was sent, and nothing came back in time."""
    return OutOfTime(
        f"The device did not answer within {waited_ms} ms; the call may have happened.",
        details={"device_id": device_id, "sent": True},
        guidance=_LOOK,
        code="DEVICE_TIMEOUT",
    )


def connection_lost(device_id: str) -> OutOfTime:
    """The device lost its connection while a call was under way."""
    return OutOfTime(
        "The device lost its connection before it answered; the call may have happened.",
        details={"device_id": device_id, "sent": True},
        guidance=_LOOK,
        code="DEVICE_TIMEOUT",
    )


def not_ready(device_id: str) -> OutOfTime:
    """The time was over before the device was ready to be called."""
    return OutOfTime(
        "The device did not answer the handshake in time; the call was not sent.",
        details={"device_id": device_id, "sent": False},
        guidance=_NOT_SENT,
        code="DEVICE_TIMEOUT",
    )


def replaced(device_id: str) -> Conflict:
    """The device has connected anew while a call was under way."""
    return Conflict(
        "The device has connected anew, so no answer can come; the call may have happened.",
        details={"device_id": device_id, "sent": True},
        guidance=_LOOK,
        code="SESSION_REPLACED",
    )


def said_no(code: int, message: str) -> ToolFailed:
    """The device's own error, passed on."""
    return ToolFailed(
        message,
        details={"code": code},
        guidance="The device has refused this or could not do it, in its own words; 'tools/list' shows what it takes.",
        code=DEVICE_ERROR,
    )


def unreadable(device_id: str) -> ToolFailed:
    """The device has answered what cannot be read."""
    return ToolFailed(
        "The device's answer cannot be read; the call has happened.",
        details={"device_id": device_id, "sent": True},
        guidance=_LOOK,
        code="DEVICE_REPLY_UNREADABLE",
    )


def undescribed(tool: str) -> ToolFailed:
    """The device describes what a tool takes in a way that no argument can be checked against."""
    return ToolFailed(
        "The device describes this tool's arguments in a way that cannot be read; nothing was sent.",
        details={"tool": tool},
        guidance="Its firmware needs a correction.",
        code="TOOL_UNDESCRIBED",
    )
