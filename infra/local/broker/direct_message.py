"""Why a direct message was not sent, or is not known to have arrived, as SendDirectMessage tells it."""

from __future__ import annotations


class DirectMessageError(Exception):
    """A direct message did not do what was asked."""


class InvalidDirectMessage(DirectMessageError):
    """The request is not one that IoT Core takes."""


class DirectMessageNotAllowed(DirectMessageError):
    """The client may not receive on the topic."""


class ClientNotConnected(DirectMessageError):
    """The client is not there."""


class DirectMessageTooLarge(DirectMessageError):
    """The payload is larger than a message can be."""


class ClientBusy(DirectMessageError):
    """The client has too much on its way already."""


class DeliveryUnconfirmed(DirectMessageError):
    """The client did not acknowledge in time: it is not known whether it has the message."""
