"""Start the delivery of webhook events: of new ones, and each minute of those that are to be sent again."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from api.deployment import DEVICES, STREAM_SECONDS, WEBHOOK_DELIVERY, TableStream, change, lambda_function, table
from api.stream_records import batch_worker
from shared.devices import keys
from shared.devices.registry import devices_table
from shared.devices.webhook_delivery import due_tenants, wake
from shared.platform.clock import now_ms
from shared.platform.telemetry import correlation_id_from
from shared.rpc.errors import KhoError
from shared.rpc.invocation import start
from shared.rpc.observation import observe

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from api.stream_records import StreamRecord

FUNCTION: Final = "workers-deliver_webhooks"


@batch_worker("workers/wake_webhooks")
def _wake(records: Sequence[StreamRecord]) -> None:
    _start(wake(devices_table(), [(each.pk, each.sk) for each in records], now_ms()))


@lambda_function(
    table("Devices", "Query", "UpdateItem"),
    WEBHOOK_DELIVERY,
    stream=TableStream(
        table="Devices",
        filters=(change("INSERT", sk={"prefix": keys.EVENT}),),
        batch_size=100,
        max_age=STREAM_SECONDS,
    ),
    schedule="rate(1 minute)",
    condition=DEVICES,
)
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Start the deliveries of tenants with new events, or of those whose events are to be sent again."""
    if "Records" in event:
        return _wake(event, context)
    # The next schedule repeats what fails.
    with suppress(KhoError), observe("workers/wake_webhooks", correlation_id_from(None)):
        _start(due_tenants(devices_table(), now_ms()))
    return {"batchItemFailures": []}


def _start(tenants: Iterable[str]) -> None:
    for tenant_id in tenants:
        start(FUNCTION, {"tenant_id": tenant_id})
