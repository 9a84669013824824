"""device-server/webhooks/set: the address to which the events of the tenant's devices are sent, with a new secret."""

import secrets
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from api.deployment import lambda_function, table
from api.handler import method
from shared.devices.webhooks import EventKind, Webhook, new_secret, send_event, webhook_client, webhooks
from shared.platform.clock import now
from shared.platform.public_address import AddressFailed, AddressRefused
from shared.rpc.caller import Caller
from shared.rpc.errors import FieldProblem, InvalidParams
from shared.rpc.field_messages import worded
from shared.rpc.method import Params
from shared.rpc.strict_json import compact


class SetWebhook(Params):
    """A receiver, and the kinds of events that it gets."""

    url: Annotated[
        str,
        Field(
            max_length=2048,
            pattern=worded(r"^https://[!-~]+$", "an address that begins with https://"),
            examples=["https://hooks.example.com/kho"],
            description="the https:// address, of a public host and without redirects",
        ),
    ]
    events: Annotated[
        list[EventKind],
        Field(min_length=1, max_length=3, description="the kinds of events that are sent"),
    ]


@dataclass(frozen=True, slots=True)
class NewWebhook:
    """The webhook, with its secret, and the outcome of a first request."""

    url: Annotated[str, Field(description="the address")]
    events: Annotated[list[EventKind], Field(description="the kinds of events that are sent")]
    created_at: Annotated[str, Field(description="events of before are not sent")]
    secret: Annotated[str, Field(description="the key of the signatures, shown only now")]
    test: Annotated[str, Field(description="the outcome of a first request, an event of type `ping`")]


@lambda_function(table("Devices", "DeleteItem", "GetItem", "PutItem"))
@method(
    "device-server/webhooks/set",
    role="operator",
    example={"url": "https://hooks.example.com/kho", "events": ["notification", "presence"]},
)
def handler(params: SetWebhook, caller: Caller) -> NewWebhook:
    """Set the tenant's webhook, and send it a first event."""
    events = list(dict.fromkeys(params.events))
    secret = new_secret()
    outcome = _ping(Webhook(params.url, events, secret, now()))
    stored = webhooks(caller.tenant_id).set(params.url, events, secret)
    return NewWebhook(stored.url, stored.events, stored.created_at, secret, outcome)


def _ping(webhook: Webhook) -> str:
    """Send a first event, and return the outcome in words. Raise InvalidParams if the address is refused."""
    body = compact({"type": "ping", "timestamp": webhook.created_at, "data": {}})
    try:
        status = send_event(webhook_client(), webhook, f"evt_{secrets.token_hex(16)}", body)
    except AddressRefused as error:
        raise InvalidParams(FieldProblem(field="url", message=str(error))) from None
    except AddressFailed as error:
        return f"The address {error}."
    return f"The receiver answered {status}."
