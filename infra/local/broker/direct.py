"""Why a direct message was not sent, or is not known to have arrived, as SendDirectMessage tells it."""

from __future__ import annotations


class DirectFailed(Exception):
    """A direct message did not do what was asked."""


class Invalid(DirectFailed):
    """The request is not one that IoT Core takes."""


class NotAllowed(DirectFailed):
    """The client may not receive on the topic."""


class NotConnected(DirectFailed):
    """The client is not there."""


class TooLarge(DirectFailed):
    """The payload is larger than a message can be."""


class Busy(DirectFailed):
    """The client has too much on its way already."""


class Unconfirmed(DirectFailed):
    """The client did not acknowledge in time: it is not known whether it has the message."""
