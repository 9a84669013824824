"""Start the delivery of webhook events: of new ones, and each minute of those that are to be sent again."""

from __future__ import annotations

from typing import Any, Final

from api.deployment import DEVICES, WEBHOOK_DELIVERY, TableStream, change, lambda_function, table
from shared.clock import now_ms
from shared.devices import keys
from shared.devices.registry import devices_table
from shared.devices.webhook_delivery import due_tenants, wake
from shared.rpc.errors import KhoError
from shared.rpc.invoke import start
from shared.telemetry import correlation_id_from, observe

FUNCTION: Final = "workers-deliver_webhooks"
_STREAM_AGE: Final = 86_400


@lambda_function(
    table("Devices", "Query", "UpdateItem"),
    WEBHOOK_DELIVERY,
    stream=TableStream(
        table="Devices",
        filters=(change("INSERT", sk={"prefix": keys.EVENT}),),
        batch_size=100,
        max_age=_STREAM_AGE,
    ),
    schedule="rate(1 minute)",
    condition=DEVICES,
)
def handler(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    """Start the tenants' deliveries. If that fails, request the whole batch again."""
    records = event.get("Records", [])
    events = [tuple(record["dynamodb"]["Keys"][name]["S"] for name in ("pk", "sk")) for record in records]
    try:
        with observe("workers/wake_webhooks", correlation_id_from(records[0].get("eventID") if records else None)):
            at_ms = now_ms()
            tenants = wake(devices_table(), events, at_ms) if records else due_tenants(devices_table(), at_ms)
            for tenant_id in tenants:
                start(FUNCTION, {"tenant_id": tenant_id})
    except KhoError:
        failed = [{"itemIdentifier": record["dynamodb"]["SequenceNumber"]} for record in records[:1]]
        return {"batchItemFailures": failed}
    return {"batchItemFailures": []}
