"""Errors of device calls; each says whether the call may have been executed."""

from typing import Final

from shared.rpc.error_template import ErrorTemplate
from shared.rpc.errors import Conflict, OutOfTime, ToolFailed, Unavailable

DEVICE_ERROR: Final = "DEVICE_ERROR"
_DEVICE_TIMEOUT: Final = "DEVICE_TIMEOUT"
_CHECK_STATE: Final = "Check the device's state before you call again; a call that was sent is never repeated."
_DETAILS: Final = ("device_id",)

offline = ErrorTemplate(
    Unavailable,
    "DEVICE_OFFLINE",
    "The device is not connected; nothing was sent to it.",
    "It reconnects by itself once it has power and a network; 'devices/get' shows whether it is connected.",
    _DETAILS,
    always={"sent": False},
)
not_ready = ErrorTemplate(
    OutOfTime,
    _DEVICE_TIMEOUT,
    "The device did not answer the handshake in time; the call was not sent.",
    "Nothing was executed. The device may be busy or slow: call again with a longer timeout.",
    _DETAILS,
    always={"sent": False},
)
no_reply = ErrorTemplate(
    OutOfTime,
    _DEVICE_TIMEOUT,
    "The device did not answer within {waited_ms} ms; the call may have happened.",
    f"{_CHECK_STATE} What a device sends above 100 messages a second is discarded.",
    _DETAILS,
    always={"sent": True},
)
connection_lost = ErrorTemplate(
    OutOfTime,
    _DEVICE_TIMEOUT,
    "The device lost its connection before it answered; the call may have happened.",
    _CHECK_STATE,
    _DETAILS,
    always={"sent": True},
)
replaced = ErrorTemplate(
    Conflict,
    "SESSION_REPLACED",
    "The device has reconnected, so its reply is lost; the call may have happened.",
    _CHECK_STATE,
    _DETAILS,
    always={"sent": True},
)
unreadable = ErrorTemplate(
    ToolFailed,
    "DEVICE_REPLY_UNREADABLE",
    "The device's reply cannot be read; the call has happened.",
    _CHECK_STATE,
    _DETAILS,
    always={"sent": True},
)
device_error = ErrorTemplate(
    ToolFailed,
    DEVICE_ERROR,
    "{message}",
    "The message is the device's own: it refused the call or it failed. 'tools/list' shows the tool's arguments.",
    ("code",),
)
update_failed = ErrorTemplate(
    ToolFailed,
    "UPDATE_FAILED",
    "The device could not download or install the firmware; it runs the one of before.",
    "The device must reach the URL, and be answered 200 with the image of an application and a Content-Length.",
    _DETAILS,
)
tool_undescribed = ErrorTemplate(
    ToolFailed,
    "TOOL_UNDESCRIBED",
    "The device's input schema for this tool is invalid; nothing was sent.",
    "The device's firmware must be corrected.",
    ("tool",),
)
