"""The quirks of simulated devices."""

from enum import Enum
from typing import Final


class Quirk(Enum):
    """A deviation that the backend must tolerate; its value is its name on the command line."""

    # Quirks of the measured firmware.
    BARE_ERRORS = "bare-errors"
    """Errors have no code, and their message is not escaped: a quote in it makes invalid JSON."""
    INT32_IDS = "int32-ids"
    """Ids are truncated to 32-bit integers."""
    NUMBERS_ONLY = "numbers-only"
    """Requests with a string id, or with params that are not an object, are dropped."""
    ONE_AT_A_TIME = "one-at-a-time"
    """Calls run one after the other."""
    IMAGE_STRINGS = "image-strings"
    """Images are sent as a JSON string."""
    EMPTY_SESSION = "empty-session"
    """The session id is left empty."""
    LENIENT_ARGUMENTS = "lenient-arguments"
    """Invalid arguments fall back to defaults, names ignore case, floats are truncated, text ends at NUL."""

    # Network faults and faulty devices.
    OUT_OF_ORDER = "out-of-order"
    """Replies close to each other arrive in reverse order."""
    LATE = "late"
    """Replies arrive after the caller's timeout."""
    DOUBLED = "doubled"
    """Each reply is sent twice."""
    NEVER = "never"
    """Calls are not answered."""
    NEVER_AT_ALL = "never-at-all"
    """No request is answered."""
    STRANGE_IDS = "strange-ids"
    """Replies have an unknown id."""
    BROKEN_JSON = "broken-json"
    """Replies are truncated in the middle."""
    REPEATING_CURSOR = "repeating-cursor"
    """The tool list repeats a cursor and never ends."""
    BIG_TOOL = "big-tool"
    """One tool's description is 9 kB long, which hides the tools after it."""
    COLLIDING_NAMES = "colliding-names"
    """Two tools have the same alias after invalid characters are replaced."""
    LARGE_IMAGES = "large-images"
    """Images are a little over 100 kB."""
    OVERSIZE_IMAGES = "oversize-images"
    """Images exceed the maximum message size; the broker closes the connection."""
    HELLO = "hello"
    """An audio channel is opened after connecting: a hello, then silence for 10 s unless it is answered."""
    FLOOD = "flood"
    """Invalid payloads are published a thousand times a second."""
    VANISH = "vanish"
    """The connection drops as soon as a call arrives."""
    NOTIFIES = "notifies"
    """A notification is sent every second."""
    SUBSCRIBES = "subscribes"
    """The device subscribes to its topic; the measured firmware does not."""
    TRESPASSES = "trespasses"
    """The device publishes on another device's topic."""


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
"""The quirks of the measured firmware; a device without them follows the protocol description."""
