"""Send a tenant's webhook events: those of each device in order, again for 24 hours."""

import math
from typing import Any

from api.deployment import DEAD_LETTERS, DEVICES, lambda_function, table
from shared.devices.registry import devices_table
from shared.devices.webhook_delivery import METHOD, WebhookDelivery
from shared.platform.telemetry import correlation_id_from
from shared.rpc.observation import observe


@lambda_function(
    table("Devices", "BatchWriteItem", "DeleteItem", "GetItem", "Query", "UpdateItem"),
    table("Limits", "UpdateItem"),
    DEAD_LETTERS,
    timeout=900,
    condition=DEVICES,
)
def handler(event: dict[str, Any], _context: Any) -> None:
    """Deliver the events of one tenant. The next schedule starts what a failure of the store has ended."""
    with observe(METHOD, correlation_id_from(None), budget=math.inf):
        WebhookDelivery(devices_table(), event["tenant_id"]).run()
