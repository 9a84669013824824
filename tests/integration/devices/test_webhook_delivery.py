"""Webhooks on one machine: from a simulated board through the broker, the rules and the stream to a receiver."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from infra.local.dynamodb import connect, create_tables
from infra.local.schedules import ScheduledInvocations
from infra.local.streams import StreamReader
from infra.local.template import ScheduleTrigger, load
from shared.devices import webhook_delivery, webhooks
from shared.devices.registry import devices_table
from shared.devices.webhooks import Webhooks, new_secret
from shared.platform.runtime import runtime
from shared.rpc import invocation
from tests.helpers.device_backend import running_device_backend
from tests.helpers.wait import until
from tests.helpers.webhook_receiver import URL, webhook_receiver

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.helpers.webhook_receiver import WebhookReceiver

WAKING = "workers-wake_webhooks"


@pytest.fixture
def receiver(tmp_path: Path, store: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[WebhookReceiver]:
    """Run the receiver of tenant `local`, and the stream that wakes its delivery."""
    trigger = next(each for each in load().streams if each.function == WAKING)
    stored = Webhooks(devices_table(), "local")
    with webhook_receiver(tmp_path) as running:
        monkeypatch.setattr(webhooks, "_client", lambda: running.client)
        monkeypatch.setattr(webhook_delivery, "_FIRST_RETRY_SECONDS", 0.05)
        stored.set(URL, ["notification", "presence"], new_secret())
        reader = StreamReader(trigger, store, runtime.functions, tmp_path)  # type: ignore[arg-type] # the functions
        reader.start()
        yield running
        stored.delete()
        reader.stop()
        reader.join()


def test_what_a_board_tells_reaches_the_receiver_in_order(receiver: WebhookReceiver) -> None:
    """Forty notifications at once, and a receiver that is down at first."""
    receiver.is_down = True
    with running_device_backend(rules=True) as home, home.device() as one:
        until(lambda: one.known)
        until(lambda: receiver.attempts > 0)

        def tell() -> None:
            for number in range(40):
                one.simulated.notify("notifications/pressed", number=number)

        one.fleet.do(tell)
        until(lambda: len(one.notifications()) >= 40)
        receiver.is_down = False

        def retry() -> bool:
            """Deliver as if the time of each next attempt had come."""
            for tenant_id in webhook_delivery.due_tenants(devices_table(), 1 << 50):
                invocation.start("workers-deliver_webhooks", {"tenant_id": tenant_id})
            return len(pressed(receiver, one.id)) == 40

        until(retry)
        assert pressed(receiver, one.id) == list(range(40))
        connected = [each["data"] for each in receiver.events(one.id) if each["type"] == "presence"]
        assert connected[0] == {"device_id": one.id, "connected": True}


def pressed(receiver: WebhookReceiver, device_id: str) -> list[int]:
    """Return the numbers of the notifications that the receiver has accepted."""
    return [
        each["data"]["params"]["number"]
        for each in receiver.events(device_id)
        if each["data"].get("method") == "notifications/pressed"
    ]


def test_schedule_invokes_its_function_at_once_and_at_each_interval() -> None:
    invoked: list[Any] = []
    enough = threading.Event()

    def functions(name: str, payload: bytes) -> bytes:
        invoked.append((name, payload))
        if len(invoked) == 2:
            raise TimeoutError
        if len(invoked) == 3:
            enough.set()
        return b"null"

    schedule = ScheduledInvocations(ScheduleTrigger(0.0, WAKING), functions)  # type: ignore[arg-type] # as Functions
    schedule.start()
    until(enough.is_set)
    schedule.stop()
    schedule.join()
    assert {name for name, _ in invoked} == {WAKING}


def test_template_has_the_schedule() -> None:
    assert load().schedules == [ScheduleTrigger(60.0, WAKING)]


def test_table_of_a_former_version_gets_the_stream(store: str) -> None:
    """Its items stay."""
    definition = next(each for each in load().tables if each.logical == "DevicesTable")
    former = {name: value for name, value in definition.creation.items() if name != "StreamSpecification"}
    table = replace(definition, name="kho-FormerDevicesTable", creation=former)
    item = {"pk": {"S": "a"}, "sk": {"S": "b"}}
    with connect(store) as client:
        create_tables(store, [table])
        client.put_item(TableName=table.name, Item=item)
        for _ in range(2):
            create_tables(store, [replace(table, creation=definition.creation)])
            description = client.describe_table(TableName=table.name)["Table"]
            assert description["StreamSpecification"]["StreamViewType"] == "KEYS_ONLY"
        assert client.get_item(TableName=table.name, Key=item)["Item"] == item
