"""What is odd about a device."""

from __future__ import annotations

from enum import Enum
from typing import Final


class Quirk(Enum):
    """One thing that the backend must live with; its value is what the command line calls it."""

    # What the measured firmware does.
    BARE_ERRORS = "bare-errors"
    """An error has no code, and its message is not escaped: a quote in it makes invalid JSON."""
    INT32_IDS = "int32-ids"
    """An id is cut to 32 bits and to a whole number."""
    NUMBERS_ONLY = "numbers-only"
    """A request with a string as id, or without params that are an object where it has some, is dropped."""
    ONE_AT_A_TIME = "one-at-a-time"
    """Calls run one after the other."""
    IMAGE_STRINGS = "image-strings"
    """An image is a string of JSON."""
    EMPTY_SESSION = "empty-session"
    """The session id is left empty."""
    LENIENT_ARGUMENTS = "lenient-arguments"
    """A wrong argument that has a default takes it, names match without case, floats are cut, text ends at NUL."""

    # What goes wrong on the way, or in a device that is ill.
    OUT_OF_ORDER = "out-of-order"
    """Replies that are close to each other come in reverse."""
    LATE = "late"
    """Replies come when nobody waits any more."""
    DOUBLED = "doubled"
    """Each reply comes twice."""
    NEVER = "never"
    """No call is replied to."""
    NEVER_AT_ALL = "never-at-all"
    """Nothing is replied to."""
    STRANGE_IDS = "strange-ids"
    """Each reply has an id that nobody has used."""
    BROKEN_JSON = "broken-json"
    """Every reply is cut off in its middle."""
    REPEATING_CURSOR = "repeating-cursor"
    """The list of tools never ends."""
    BIG_TOOL = "big-tool"
    """The description of one tool is 9 kB long, which hides the tools behind it."""
    COLLIDING_NAMES = "colliding-names"
    """Two tools have the same name once what other protocols do not allow in names is replaced."""
    LARGE_IMAGES = "large-images"
    """An image is a little over 100 kB."""
    OVERSIZE_IMAGES = "oversize-images"
    """An image is larger than a message can be: the broker ends the connection."""
    HELLO = "hello"
    """An audio channel is opened after connecting: hello, and no word for 10 s where it is not accepted."""
    FLOOD = "flood"
    """Garbage is published a thousand times a second."""
    VANISH = "vanish"
    """The connection is lost as soon as a call arrives."""
    NOTIFIES = "notifies"
    """A notification is sent every second."""
    SUBSCRIBES = "subscribes"
    """It subscribes to its topic, which the measured firmware does not."""
    TRESPASSES = "trespasses"
    """It publishes on another device's topic."""


FIRMWARE: Final = frozenset(
    {
        Quirk.BARE_ERRORS,
        Quirk.INT32_IDS,
        Quirk.NUMBERS_ONLY,
        Quirk.ONE_AT_A_TIME,
        Quirk.IMAGE_STRINGS,
        Quirk.EMPTY_SESSION,
        Quirk.LENIENT_ARGUMENTS,
    }
)
"""The quirks of the firmware that was measured; a device without them does what the protocol's description says."""
