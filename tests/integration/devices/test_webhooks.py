"""Webhooks: events of devices reach the tenant's receiver, signed, in order, and again while it is down."""

from __future__ import annotations

import base64
import json
import threading
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from infra.clients.cli.tenants import _erase_items, _items
from shared.aws.dynamodb import Keys, Write
from shared.devices import keys, webhooks
from shared.devices.registry import devices_table, registry
from shared.devices.webhook_delivery import WebhookDelivery, due_tenants, wake
from shared.devices.webhooks import Webhooks, new_secret
from shared.platform.clock import iso_time, now_ms
from shared.platform.config import config
from shared.platform.public_address import PublicClient
from shared.rpc.errors import InvalidParams, NotFound
from tests.helpers.board_requests import BOARD_SETTINGS
from tests.helpers.clock import Clock
from tests.helpers.interference import another_caller
from tests.helpers.log_records import log_records
from tests.helpers.stream_deliveries import letters_of
from tests.helpers.wait import CEILING_SECONDS
from tests.helpers.webhook_receiver import PUBLIC, URL, WebhookReceiver, webhook_receiver
from tests.integration.devices.test_firmware import offered, set_firmware
from tests.integration.devices.test_onboarding import call, claimed_board, refusal
from workers import device_inbox, device_presence

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MINUTE = 60.0
DAY = 86_400.0


@pytest.fixture
def receiver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WebhookReceiver]:
    with webhook_receiver(tmp_path) as running:
        monkeypatch.setattr(webhooks, "_client", lambda: running.client)
        yield running


@pytest.fixture
def clock() -> Clock:
    clock = Clock()
    clock.advance(5)
    return clock


class Outbox:
    """A tenant with a webhook, whose devices cause events at times of the test's clock."""

    def __init__(self, tenant: str, receiver: WebhookReceiver, clock: Clock) -> None:
        self.tenant, self.receiver, self.clock = tenant, receiver, clock
        self.secret = new_secret()
        self.stored: list[tuple[str, str]] = []
        self.webhooks = Webhooks(devices_table(), tenant)
        self.webhooks.set(URL, ["notification", "presence", "firmware"], self.secret)

    def add(self, device_id: str, number: int) -> None:
        """Store an event of a device."""
        writes = self.webhooks.event_writes("notification", device_id, self.clock.milliseconds(), {"number": number})
        for write in writes:
            devices_table().write(write)
            self.stored.append((write.target["pk"], write.target["sk"]))

    def deliver(self) -> None:
        """Deliver as the stream and the schedule cause it."""
        at_ms = self.clock.milliseconds()
        stored, self.stored = self.stored, []
        if self.tenant in (wake(devices_table(), stored, at_ms) if stored else due_tenants(devices_table(), at_ms)):
            self.run()

    def run(self) -> None:
        WebhookDelivery(
            devices_table(), self.tenant, self.receiver.client, clock=self.clock, pause=self.clock.advance
        ).run()

    def numbers(self, device_id: str) -> list[int]:
        """Return the numbers that the receiver has accepted."""
        return [each["data"]["number"] for each in self.receiver.events(device_id)]

    def items(self) -> list[str]:
        """Return the keys of what waits."""
        pages = devices_table().scan(f"{self.tenant}#outbox#")
        waiting = devices_table().query(keys.webhook(self.tenant), Keys.beginning(keys.WAITING))
        return [item["sk"] for page in [*pages, *waiting] for item in page]


@pytest.fixture
def outbox(tenant: str, receiver: WebhookReceiver, clock: Clock) -> Outbox:
    return Outbox(tenant, receiver, clock)


def test_events_arrive_signed_and_leave_nothing(outbox: Outbox, receiver: WebhookReceiver) -> None:
    outbox.add("lamp", 1)
    outbox.deliver()
    assert outbox.numbers("lamp") == [1]
    receiver.verify(0, outbox.secret)
    assert int(receiver.headers[0]["webhook-timestamp"]) == int(outbox.clock())
    assert receiver.headers[0]["content-type"] == "application/json"
    assert outbox.items() == []
    assert devices_table().get(keys.WEBHOOKS, outbox.tenant) is None


def test_receiver_that_is_down_for_ten_minutes_gets_everything_in_order(
    outbox: Outbox, receiver: WebhookReceiver, clock: Clock
) -> None:
    receiver.is_down = True
    for number in range(10):
        for device_id in ("lamp", "gate", "fan", "door"):
            outbox.add(device_id, number)
        outbox.deliver()
        clock.advance(MINUTE)
        outbox.deliver()
    assert receiver.received == []
    assert receiver.attempts < 60
    assert call("webhooks_get", outbox.tenant)["waiting_devices"] == 4
    assert call("webhooks_get", outbox.tenant)["failing_since"]
    receiver.is_down = False
    for _ in range(6):
        clock.advance(MINUTE)
        outbox.deliver()
    for device_id in ("lamp", "gate", "fan", "door"):
        assert outbox.numbers(device_id) == list(range(10))
    assert outbox.items() == []
    state = call("webhooks_get", outbox.tenant)
    assert (state["waiting_devices"], state["dropped"], state.get("problem")) == (0, 0, None)


def run_of(outbox: Outbox) -> str:
    """Return the id of another run, which takes the lease after it has ended."""
    outbox.clock.advance(3600)
    other = WebhookDelivery(devices_table(), outbox.tenant, outbox.receiver.client, clock=outbox.clock)
    state = other._lease()
    assert state
    assert state["run_id"] == other._run_id
    return other._run_id


@pytest.mark.parametrize("is_down", [False, True])
def test_run_whose_lease_another_run_just_took_leaves_it_alone(
    outbox: Outbox, receiver: WebhookReceiver, is_down: bool
) -> None:
    """It neither ends the delivery nor gives up a lease that is no longer its own."""
    receiver.is_down = is_down
    outbox.add("lamp", 1)
    outbox.clock.advance(5)
    others: list[str] = []
    # A receiver that is down is left alone after two updates to wake the run, its lease, and the note of the failure.
    last: Any = {"before": "UpdateItem", "at": 5} if is_down else {"before": "DeleteItem"}
    with another_caller(lambda: others.append(run_of(outbox)), **last):
        outbox.deliver()
    state = devices_table().get(keys.WEBHOOKS, outbox.tenant)
    assert state
    assert state["run_id"] == others[0]


def test_event_that_comes_with_the_last_one_is_delivered_too(outbox: Outbox, receiver: WebhookReceiver) -> None:
    """The device is not taken for done by a run that has not read its newest event."""

    def come(event: dict[str, Any]) -> None:
        if event["data"]["number"] == 1:
            outbox.clock.advance(0.01)
            outbox.add("lamp", 2)
            wake(devices_table(), outbox.stored, outbox.clock.milliseconds())

    receiver.on_event = come
    outbox.add("lamp", 1)
    outbox.clock.advance(5)
    outbox.deliver()
    assert outbox.numbers("lamp") == [1, 2]
    assert outbox.items() == []


def test_device_whose_events_were_just_deleted_does_not_wait(outbox: Outbox, receiver: WebhookReceiver) -> None:
    """A delay of its next attempt brings nothing back as a part of an item."""

    def delete(_event: dict[str, Any]) -> None:
        pages = devices_table().query(keys.webhook(outbox.tenant), Keys.beginning(keys.WAITING))
        devices_table().delete_all([(item["pk"], item["sk"]) for page in pages for item in page])

    receiver.on_event = delete
    receiver.status = lambda _event: 500
    outbox.add("lamp", 1)
    outbox.clock.advance(5)
    outbox.deliver()
    assert outbox.webhooks.waiting_devices() == 0


def test_run_without_events_leaves_nothing(outbox: Outbox) -> None:
    outbox.run()
    assert devices_table().get(keys.WEBHOOKS, outbox.tenant) is None


def test_receiver_that_is_down_is_left_alone_for_a_while(
    outbox: Outbox, receiver: WebhookReceiver, clock: Clock
) -> None:
    receiver.is_down = True
    outbox.add("lamp", 1)
    outbox.deliver()
    attempts = receiver.attempts
    receiver.is_down = False
    outbox.add("gate", 1)
    clock.advance(3)
    outbox.deliver()
    outbox.run()
    assert receiver.attempts == attempts, "nor does it get another device's event"
    clock.advance(3600)
    outbox.run()
    assert outbox.numbers("lamp") == [1]


def test_receiver_that_stays_down_is_left_alone_twice_as_long_each_time(
    outbox: Outbox, receiver: WebhookReceiver, clock: Clock
) -> None:
    receiver.is_down = True
    outbox.add("lamp", 1)
    outbox.deliver()
    for seconds in (10, 20, 40):
        attempts = receiver.attempts
        clock.advance(seconds - 1)
        outbox.run()
        assert receiver.attempts == attempts, seconds
        clock.advance(1.1)
        outbox.run()
        assert receiver.attempts > attempts, seconds


def test_order_is_that_of_the_events_and_not_of_their_storage(outbox: Outbox, clock: Clock) -> None:
    start = clock()
    for number in (2, 0, 1):
        clock.now = start + number / 1000
        outbox.add("lamp", number)
    clock.now = start + 0.1
    outbox.deliver()
    assert outbox.numbers("lamp") == [0, 1, 2]


def test_many_events_are_delivered_in_one_run(outbox: Outbox, clock: Clock) -> None:
    for number in range(250):
        clock.advance(0.01)
        outbox.add("lamp", number)
    outbox.deliver()
    assert outbox.numbers("lamp") == list(range(250))


def test_attempts_have_the_same_id(outbox: Outbox, receiver: WebhookReceiver, clock: Clock) -> None:
    ids = []
    client = receiver.client

    def request(_method: str, _url: str, _body: bytes, headers: dict[str, str]) -> Any:
        ids.append(headers["webhook-id"])
        return client.request(_method, _url, _body, headers)

    receiver.client = type("Recording", (), {"request": staticmethod(request)})()
    receiver.status = lambda _event: 500
    outbox.add("lamp", 1)
    outbox.deliver()
    clock.advance(20)
    receiver.status = lambda _event: 200
    outbox.deliver()
    assert len(ids) == 2
    assert len(set(ids)) == 1


def test_refused_event_holds_back_its_device_alone(outbox: Outbox, receiver: WebhookReceiver, clock: Clock) -> None:
    receiver.status = lambda event: 500 if event["data"]["number"] == 13 else 200
    for number in (13, 14):
        outbox.add("lamp", number)
        clock.advance(0.01)
    for number in range(5):
        outbox.add("gate", number)
        outbox.deliver()
        clock.advance(2)
    assert (outbox.numbers("lamp"), outbox.numbers("gate")) == ([], [0, 1, 2, 3, 4])
    assert "500" in call("webhooks_get", outbox.tenant)["problem"]
    receiver.status = lambda _event: 200
    clock.advance(5 * MINUTE)
    outbox.deliver()
    assert outbox.numbers("lamp") == [13, 14]


def test_event_that_cannot_be_sent_is_given_up_after_three_attempts(
    outbox: Outbox, receiver: WebhookReceiver, clock: Clock
) -> None:
    """A damaged event is a dead letter and told as dropped, and the device's next ones are sent."""
    for number in range(3):
        outbox.add("a", number)
        clock.advance(0.01)
    pk, sk = outbox.stored[1]
    devices_table().write(Write("Update", {"pk": pk, "sk": sk}, "REMOVE body"))
    clock.advance(5)
    for _ in range(2):
        outbox.deliver()
        assert letters_of(outbox.tenant) == []
        clock.advance(MINUTE)
    outbox.deliver()
    assert [each["data"]["number"] for each in receiver.events("a")] == [0, 2]
    assert [(each.method, each.code, each.sk) for each in letters_of(outbox.tenant)] == [
        ("workers/deliver_webhooks", "INTERNAL_ERROR", sk)
    ]
    assert outbox.webhooks.status().dropped == 1


def test_event_is_retried_for_a_day_and_then_dropped_and_told(
    outbox: Outbox, receiver: WebhookReceiver, clock: Clock, log: Path
) -> None:
    receiver.is_down = True
    outbox.add("lamp", 1)
    outbox.deliver()
    clock.advance(DAY - 5 * MINUTE)
    outbox.add("lamp", 2)
    outbox.deliver()
    before = receiver.attempts
    clock.advance(4 * MINUTE)
    outbox.deliver()
    assert receiver.attempts > before
    assert call("webhooks_get", outbox.tenant)["dropped"] == 0
    clock.advance(10 * MINUTE)
    receiver.is_down = False
    outbox.deliver()
    assert outbox.numbers("lamp") == [2]
    state = call("webhooks_get", outbox.tenant)
    assert (state["dropped"], bool(state["dropped_at"])) == (1, True)
    assert [each["events"] for each in log_records(log, "webhook events dropped")] == [1]


def test_redirect_is_a_failure_that_is_not_followed(outbox: Outbox, receiver: WebhookReceiver) -> None:
    receiver.status = lambda _event: 302
    outbox.add("lamp", 1)
    outbox.deliver()
    assert receiver.attempts == 1
    assert "redirects" in call("webhooks_get", outbox.tenant)["problem"]


def test_two_runs_of_a_tenant_send_each_event_once(outbox: Outbox, receiver: WebhookReceiver) -> None:
    ready, going = threading.Event(), threading.Event()

    def hold(_event: dict[str, Any]) -> None:
        ready.set()
        assert going.wait(CEILING_SECONDS)

    receiver.on_event = hold
    outbox.add("lamp", 1)
    first = threading.Thread(target=outbox.deliver)
    first.start()
    assert ready.wait(CEILING_SECONDS)
    outbox.run()
    going.set()
    first.join(CEILING_SECONDS)
    assert (outbox.numbers("lamp"), receiver.attempts) == ([1], 1)


def test_event_that_comes_during_a_run_is_delivered(outbox: Outbox, receiver: WebhookReceiver, clock: Clock) -> None:
    def add_another(event: dict[str, Any]) -> None:
        if event["data"]["number"] == 1:
            outbox.add("gate", 2)
            assert wake(devices_table(), outbox.stored, clock.milliseconds()) == []

    receiver.on_event = add_another
    outbox.add("lamp", 1)
    outbox.deliver()
    assert outbox.numbers("gate") == [2]


def test_run_that_was_killed_is_followed_by_another_one(
    outbox: Outbox, receiver: WebhookReceiver, clock: Clock
) -> None:
    outbox.add("lamp", 1)
    wake(devices_table(), outbox.stored, clock.milliseconds())
    killed = WebhookDelivery(devices_table(), outbox.tenant, receiver.client, clock=clock)
    assert killed._lease()
    outbox.run()
    assert receiver.received == []
    assert outbox.tenant not in due_tenants(devices_table(), clock.milliseconds())
    clock.advance(2 * MINUTE)
    assert outbox.tenant in due_tenants(devices_table(), clock.milliseconds())
    outbox.run()
    assert outbox.numbers("lamp") == [1]


def test_dead_receiver_of_one_tenant_delays_no_other_one(
    outbox: Outbox, tenant: str, receiver: WebhookReceiver, clock: Clock, tmp_path: Path
) -> None:
    """The receiver takes the connection and never answers."""
    ready, going = threading.Event(), threading.Event()

    def hang(_event: dict[str, Any]) -> None:
        ready.set()
        assert going.wait(CEILING_SECONDS)

    receiver.on_event = hang
    outbox.add("lamp", 1)
    hanging = threading.Thread(target=outbox.deliver)
    hanging.start()
    assert ready.wait(CEILING_SECONDS)
    folder = tmp_path / "other"
    folder.mkdir()
    with webhook_receiver(folder) as alive:
        other = Outbox(f"{tenant}-other", alive, clock)
        other.add("lamp", 2)
        other.deliver()
        assert other.numbers("lamp") == [2]
    going.set()
    hanging.join(CEILING_SECONDS)


def test_deleted_webhook_gets_nothing_more(outbox: Outbox, receiver: WebhookReceiver, clock: Clock) -> None:
    outbox.add("lamp", 1)
    assert call("webhooks_delete", outbox.tenant) == {"url": URL}
    assert "url" not in call("webhooks_get", outbox.tenant)
    assert isinstance(refusal(lambda: call("webhooks_delete", outbox.tenant)), NotFound)
    outbox.deliver()
    assert (receiver.attempts, outbox.items()) == (0, [])
    outbox.add("lamp", 2)
    assert outbox.stored == []


def notify(device_id: str, number: int, at_ms: int, sequence: int = 0) -> None:
    payload = {"jsonrpc": "2.0", "method": "notifications/pressed", "params": {"number": number}}
    raw = base64.b64encode(json.dumps({"type": "mcp", "payload": payload}).encode()).decode()
    event = {"device_id": device_id, "payload": raw, "timestamp": at_ms, "sequence": sequence}
    device_inbox.handler(event, None)


def test_notifications_presence_and_updates_of_devices_become_events(
    tenant: str, receiver: WebhookReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only of the kinds that the webhook names, and each once, however often the broker repeats it."""
    for name, value in BOARD_SETTINGS.items():
        monkeypatch.setenv(name, value)
    config.cache_clear()
    created = call("webhooks_set", tenant, url=URL, events=["notification", "firmware"])
    assert (created["test"], receiver.received[0]["type"]) == ("The receiver answered 204.", "ping")
    receiver.verify(0, created["secret"])
    board = claimed_board(tenant)
    device_id, at_ms = board.board.device_id, now_ms()
    for sequence in (1, 0, 1):
        notify(device_id, sequence, at_ms, sequence)
    lifecycle = {"clientId": device_id, "timestamp": at_ms + 1, "sessionIdentifier": "c" * 32, "versionNumber": 0}
    device_presence.handler(lifecycle | {"eventType": "disconnected", "disconnectReason": "CONNECTION_LOST"}, None)
    call("webhooks_set", tenant, url=URL, events=["presence", "firmware", "firmware"])
    notify(device_id, 7, at_ms + 2)
    disconnected = lifecycle | {"timestamp": at_ms + 3, "versionNumber": 1, "eventType": "disconnected"}
    for _ in range(2):
        device_presence.handler(disconnected | {"disconnectReason": "CONNECTION_LOST"}, None)
    set_firmware(tenant)
    for _ in range(5):
        offered(board)
    offered(board, "2.4.3")
    clock = Clock()
    clock.advance(5)
    pages = devices_table().scan(f"{tenant}#outbox#")
    wake(devices_table(), [(item["pk"], item["sk"]) for page in pages for item in page], clock.milliseconds())
    WebhookDelivery(devices_table(), tenant, receiver.client, clock=clock, pause=clock.advance).run()
    told = [
        (each["type"], {k: v for k, v in each["data"].items() if k != "device_id"})
        for each in receiver.events(device_id)
    ]
    update = {"board": "bread-compact-wifi", "version": "2.4.2", "outcome": "failed"}
    assert told == [
        ("notification", {"method": "notifications/pressed", "params": {"number": 0}}),
        ("notification", {"method": "notifications/pressed", "params": {"number": 1}}),
        ("presence", {"connected": False, "reason": "CONNECTION_LOST"}),
        ("firmware", update),
        ("firmware", update | {"version": "2.4.3", "outcome": "installed"}),
    ]
    monkeypatch.undo()
    config.cache_clear()


def test_each_setting_has_a_new_secret_that_is_not_shown_again(tenant: str, receiver: WebhookReceiver) -> None:
    first, second = (call("webhooks_set", tenant, url=URL, events=["presence"]) for _ in range(2))
    assert first["secret"] != second["secret"]
    assert first["created_at"] == second["created_at"]
    assert second["secret"] not in json.dumps(call("webhooks_get", tenant))
    receiver.verify(1, second["secret"])


def resolving_to(*addresses: str) -> PublicClient:
    def connect(_address: tuple[str, int], _seconds: float) -> Any:
        raise AssertionError("nothing is connected to")

    return PublicClient(webhooks.LIMITS, lambda _host, _port: list(addresses), connect)


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "10.0.0.8", "192.168.1.5", "169.254.169.254", "::1", "fd00::1", "::ffff:127.0.0.1", "0.0.0.0"],
)
def test_addresses_that_are_not_public_are_refused(address: str, tenant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if the name has a public address too."""
    monkeypatch.setattr(webhooks, "_client", lambda: resolving_to(PUBLIC, address))
    error = refusal(lambda: call("webhooks_set", tenant, url=URL, events=["presence"]))
    assert isinstance(error, InvalidParams)
    assert error.details == [{"field": "url", "message": "is not a public address"}]
    assert "url" not in call("webhooks_get", tenant)


@pytest.mark.parametrize(
    "url",
    [
        "http://hooks.example/",
        "https://localhost/",
        "https://127.0.0.1/",
        "https://[::1]/",
        "https://10.0.0.1:8443/x",
        "https://u:p@hooks.example/",
        "https:///x",
    ],
)
def test_urls_that_are_not_public_https_are_refused(url: str, tenant: str) -> None:
    error = refusal(lambda: call("webhooks_set", tenant, url=url, events=["presence"]))
    assert isinstance(error, InvalidParams)
    assert [each["field"] for each in error.details] == ["url"]


def test_redirecting_address_is_refused(tenant: str, receiver: WebhookReceiver) -> None:
    receiver.status = lambda _event: 307
    error = refusal(lambda: call("webhooks_set", tenant, url=URL, events=["presence"]))
    assert error.details == [{"field": "url", "message": "redirects"}]
    assert "url" not in call("webhooks_get", tenant)


def test_receiver_that_is_down_can_be_set(tenant: str, receiver: WebhookReceiver) -> None:
    receiver.is_down = True
    assert "refuses connections" in call("webhooks_set", tenant, url=URL, events=["presence"])["test"]


@pytest.mark.parametrize("events", [[], ["audio"], "presence"])
def test_kinds_of_events_are_checked(events: Any, tenant: str, receiver: WebhookReceiver) -> None:
    assert isinstance(refusal(lambda: call("webhooks_set", tenant, url=URL, events=events)), InvalidParams)
    assert receiver.attempts == 0


def test_erased_tenant_leaves_nothing(outbox: Outbox) -> None:
    outbox.add("lamp", 1)
    wake(devices_table(), outbox.stored, outbox.clock.milliseconds())
    _erase_items(devices_table(), outbox.tenant)
    assert outbox.items() == []
    assert devices_table().get(keys.WEBHOOKS, outbox.tenant) is None
    assert outbox.webhooks.find() is None


def test_export_has_no_secret(outbox: Outbox) -> None:
    items = [each["item"] for each in _items(outbox.tenant)]
    assert [item["url"] for item in items if item["sk"] == keys.WEBHOOK] == [URL]
    assert outbox.secret not in json.dumps(items, default=str)


def test_presence_and_its_event_are_stored_together_or_not_at_all(tenant: str, receiver: WebhookReceiver) -> None:
    """A repeated lifecycle event that is refused leaves no event."""
    Webhooks(devices_table(), tenant).set(URL, ["presence"], new_secret())
    device, _ = registry().register(tenant, f"board-{uuid4().hex}")
    event = {"clientId": device.id, "eventType": "disconnected", "sessionIdentifier": "c" * 32}
    for version, at in ((5, now_ms()), (4, now_ms() - 100), (5, now_ms())):
        device_presence.handler(event | {"timestamp": at, "versionNumber": version}, None)
    events = [item for page in devices_table().scan(f"{tenant}#outbox#") for item in page]
    assert len(events) == 1


def test_write_of_an_event_is_idempotent(outbox: Outbox) -> None:
    for _ in range(3):
        outbox.add("lamp", 1)
    assert len(set(outbox.stored)) == 1
    assert isinstance(outbox.webhooks.event_writes("presence", "lamp", 1, {})[0], Write)


def test_webhook_that_was_set_while_the_clock_was_ahead_gets_its_events(
    tenant: str, receiver: WebhookReceiver, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as ahead:
        ahead.setattr(webhooks, "now", lambda: iso_time(clock() + 2 * DAY))
        outbox = Outbox(tenant, receiver, clock)
    outbox.add("lamp", 1)
    outbox.deliver()
    assert outbox.numbers("lamp") == [1]
    assert call("webhooks_get", tenant)["dropped"] == 0


@pytest.mark.parametrize("days", [2, -0.5])
def test_event_of_a_wrong_clock_is_delivered_at_once_and_holds_nothing_back(
    outbox: Outbox, clock: Clock, days: float
) -> None:
    clock.advance(days * DAY)
    outbox.add("lamp", 1)
    clock.advance(-days * DAY)
    outbox.add("lamp", 2)
    clock.advance(2)
    outbox.deliver()
    assert sorted(outbox.numbers("lamp")) == [1, 2]
    assert outbox.items() == []


def test_retries_and_lease_of_a_clock_that_was_ahead_are_over(
    outbox: Outbox, receiver: WebhookReceiver, clock: Clock
) -> None:
    outbox.add("lamp", 1)
    clock.advance(2 * DAY - MINUTE)
    outbox.add("gate", 2)
    receiver.is_down = True
    outbox.deliver()
    clock.advance(-2 * DAY)
    receiver.is_down = False
    assert outbox.tenant in due_tenants(devices_table(), clock.milliseconds())
    clock.advance(2 * DAY)
    killed = WebhookDelivery(devices_table(), outbox.tenant, receiver.client, clock=clock)
    clock.advance(MINUTE)
    assert killed._lease()
    clock.advance(-2 * DAY)
    assert outbox.tenant in due_tenants(devices_table(), clock.milliseconds())
    outbox.run()
    assert outbox.numbers("gate") == [2]


def test_refused_event_of_a_clock_that_was_ahead_is_sent_again(
    outbox: Outbox, receiver: WebhookReceiver, clock: Clock
) -> None:
    receiver.status = lambda event: 500 if event["data"]["number"] == 13 else 200
    clock.advance(2 * DAY)
    outbox.add("lamp", 13)
    clock.advance(2)
    outbox.add("gate", 1)
    outbox.deliver()
    clock.advance(-2 * DAY)
    receiver.status = lambda _event: 200
    outbox.deliver()
    assert outbox.numbers("lamp") == [13]


def test_events_of_a_former_webhook_are_not_sent(outbox: Outbox, clock: Clock) -> None:
    """Although no time tells them apart."""
    outbox.add("lamp", 1)
    outbox.webhooks.delete()
    outbox.webhooks.set(URL, ["notification"], outbox.secret)
    outbox.add("lamp", 2)
    clock.advance(2)
    outbox.deliver()
    assert outbox.numbers("lamp") == [2]
    assert call("webhooks_get", outbox.tenant)["dropped"] == 0


def test_webhook_of_an_earlier_version_gets_the_events_that_wait(outbox: Outbox, clock: Clock) -> None:
    """Neither it nor they have an id. Set again, it has one, and its events go to no later webhook."""
    key = {"pk": keys.webhook(outbox.tenant), "sk": keys.WEBHOOK}
    devices_table().write(Write("Update", key, "REMOVE #id", names={"#id": "id"}))
    outbox.add("lamp", 1)
    outbox.webhooks.set(URL, ["notification"], outbox.secret)
    outbox.add("lamp", 2)
    clock.advance(2)
    outbox.deliver()
    assert sorted(outbox.numbers("lamp")) == [1, 2]
    outbox.add("lamp", 3)
    outbox.webhooks.delete()
    outbox.webhooks.set(URL, ["notification"], outbox.secret)
    clock.advance(2)
    outbox.deliver()
    assert sorted(outbox.numbers("lamp")) == [1, 2]
