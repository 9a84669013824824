"""device-server/webhooks/get: the tenant's webhook, and the state of its deliveries."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from api.deployment import lambda_function, table
from api.handler import method
from shared.devices.webhooks import EventKind, webhooks
from shared.rpc.caller import Caller
from shared.rpc.method import Params


class GetWebhook(Params):
    """No parameters."""


@dataclass(frozen=True, slots=True)
class WebhookView:
    """The webhook, without its secret; without `url` if there is none."""

    waiting_devices: Annotated[int, Field(description="the devices whose events wait to be sent")]
    dropped: Annotated[int, Field(description="the events that were dropped after 24 hours")]
    url: Annotated[str | None, Field(description="the address; absent if there is no webhook")] = None
    events: Annotated[list[EventKind] | None, Field(description="the kinds of events that are sent")] = None
    created_at: Annotated[str | None, Field(description="events of before are not sent")] = None
    dropped_at: Annotated[str | None, Field(description="the time at which events were dropped last")] = None
    failing_since: Annotated[str | None, Field(description="the time of the first failure after a success")] = None
    problem: Annotated[str | None, Field(description="the latest failure")] = None


@lambda_function(table("Devices", "GetItem", "Query"))
@method("device-server/webhooks/get", role="reader", example={})
def handler(_params: GetWebhook, caller: Caller) -> WebhookView:
    """Describe the tenant's webhook."""
    stored = webhooks(caller.tenant_id)
    webhook, status = stored.find(), stored.status()
    return WebhookView(
        waiting_devices=stored.waiting_devices(),
        dropped=status.dropped,
        url=webhook.url if webhook else None,
        events=webhook.events if webhook else None,
        created_at=webhook.created_at if webhook else None,
        dropped_at=status.dropped_at,
        failing_since=status.failing_since,
        problem=status.problem,
    )
