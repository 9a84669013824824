"""device-server/webhooks/delete: remove the tenant's webhook, and the events that wait for it."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from api.deployment import lambda_function, table
from api.handler import method
from shared.devices.webhooks import webhooks
from shared.rpc.caller import Caller
from shared.rpc.errors import NotFound
from shared.rpc.method import Params


class DeleteWebhook(Params):
    """No parameters."""


@dataclass(frozen=True, slots=True)
class DeletedWebhook:
    """The address that gets no more events."""

    url: Annotated[str, Field(description="the address")]


@lambda_function(table("Devices", "BatchWriteItem", "GetItem"))
@method("device-server/webhooks/delete", role="operator", errors=(NotFound,), example={})
def handler(_params: DeleteWebhook, caller: Caller) -> DeletedWebhook:
    """Delete the tenant's webhook."""
    return DeletedWebhook(webhooks(caller.tenant_id).delete().url)
