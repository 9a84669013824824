"""Errors of direct messages, as SendDirectMessage reports them."""

from __future__ import annotations


class DirectMessageError(Exception):
    """A direct message failed."""


class InvalidDirectMessage(DirectMessageError):
    """IoT Core would reject the request."""


class DirectMessageNotAllowed(DirectMessageError):
    """The client may not receive on the topic."""


class ClientNotConnected(DirectMessageError):
    """The client is not connected."""


class DirectMessageTooLarge(DirectMessageError):
    """The payload exceeds the maximum message size."""


class ClientBusy(DirectMessageError):
    """The client has too many messages in flight."""


class DeliveryUnconfirmed(DirectMessageError):
    """The client did not acknowledge in time; the delivery status is unknown."""
