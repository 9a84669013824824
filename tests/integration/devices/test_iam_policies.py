"""Least privilege for device functions: policies allow exactly the DynamoDB actions that the code uses."""

from __future__ import annotations

import base64
import time
from functools import partial
from importlib import import_module
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

import pytest

from shared.aws.dynamodb import Write
from shared.devices import keys
from shared.devices.activation_codes import SLOTS
from shared.devices.firmware_releases import RunningFirmware, firmware_releases
from shared.devices.notifications import Notifications
from shared.devices.protocol import DeviceNotification
from shared.devices.registry import registry
from shared.devices.webhooks import webhooks
from shared.platform.config import config
from shared.rpc.caller import ROLES, Caller
from tests.helpers.board_requests import BOARD_SETTINGS, BoardCaller
from tests.helpers.camera_requests import CameraDevice, form, photo_event
from tests.helpers.device_backend import DeviceBackend, DeviceUnderTest, running_device_backend
from tests.helpers.function_variables import variables_of
from tests.helpers.measured_policies import measures
from tests.helpers.template import METERING, table_actions
from tests.helpers.webhook_receiver import URL, webhook_receiver

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.helpers.model_server import ModelServer

StoreActions = set[tuple[str, str]]
T = TypeVar("T")


@pytest.fixture(scope="module")
def home() -> Iterator[DeviceBackend]:
    with running_device_backend() as running:
        yield running


@pytest.fixture
def one(home: DeviceBackend) -> Iterator[DeviceUnderTest]:
    with home.device() as connected:
        yield connected


def ask(handler: Callable[..., Any], **params: Any) -> Any:
    caller = Caller("tester", frozenset(ROLES), "local")
    call = {"method": "", "params": params, "caller": caller.record(), "correlation_id": "policy-test"}
    answer = handler(call, None)
    assert "result" in answer, answer
    return answer["result"]


def leave_a_part_of_an_older_catalogue(one: DeviceUnderTest) -> None:
    """Leave a part of an older, longer catalogue, which the next write deletes."""
    partition = keys.device("local", one.id)
    sk = f"{keys.catalogue(one.simulated.firmware.board, one.simulated.firmware.version)}07"
    one.sessions._table.write(Write("Put", {"pk": partition, "sk": sk, "reading": "old", "tools": b"", "parts": 9}))


@measures("device_server-devices_list")
def test_policy_of_devices_list(one: DeviceUnderTest, store_actions: StoreActions) -> None:
    from device_server.devices_list import handler

    store_actions.clear()
    ask(handler)
    assert store_actions == table_actions("device_server-devices_list")


@measures("device_server-devices_get", "device_server-notifications_list")
@pytest.mark.parametrize("name", ["devices_get", "notifications_list"])
def test_policy_of_reads_of_one_device(name: str, one: DeviceUnderTest, store_actions: StoreActions) -> None:
    store_actions.clear()
    ask(import_module(f"device_server.{name}").handler, device_id=one.id)
    assert store_actions == table_actions(f"device_server-{name}")


@measures("device_server-tools_list")
def test_policy_of_tools_list(one: DeviceUnderTest, store_actions: StoreActions) -> None:
    from device_server.tools_list import handler

    leave_a_part_of_an_older_catalogue(one)
    store_actions.clear()
    assert len(ask(handler, device_id=one.id)["tools"]) == 51
    assert store_actions == table_actions("device_server-tools_list")


@measures("device_server-tools_call")
def test_policy_of_tools_call(one: DeviceUnderTest, store_actions: StoreActions) -> None:
    from device_server.tools_call import handler

    leave_a_part_of_an_older_catalogue(one)
    store_actions.clear()
    params = {"device_id": one.id, "name": "self.test.echo", "arguments": {"text": "x"}}
    assert ask(handler, **params)["content"][0]["text"] == "x"
    assert store_actions == table_actions("device_server-tools_call")


@measures("device_server-devices_alert")
def test_policy_of_alerts(one: DeviceUnderTest, store_actions: StoreActions) -> None:
    from device_server.devices_alert import handler

    store_actions.clear()
    assert ask(handler, device_id=one.id, message="x") == {"sent": True}
    assert store_actions == table_actions("device_server-devices_alert")


@measures("boards-explain_photo")
def test_policy_of_photos(
    tenant: str, store_actions: StoreActions, settings: Callable[..., None], model: ModelServer
) -> None:
    from boards.explain_photo import handler

    settings(KHO_PUBLIC_URL="https://kho.example")
    camera = CameraDevice(tenant)
    store_actions.clear()
    assert handler(photo_event(camera.token, form()), None)["statusCode"] == 200
    assert len(model.asked) == 1
    assert store_actions - {METERING} == table_actions("boards-explain_photo")


@measures("workers-device_presence")
def test_policy_of_presence_worker(one: DeviceUnderTest, store_actions: StoreActions) -> None:
    from workers.device_presence import handler

    leave_a_part_of_an_older_catalogue(one)
    store_actions.clear()
    now = int(time.time() * 1000)
    event = {"clientId": one.id, "timestamp": now, "eventType": "connected", "sessionIdentifier": "c" * 32}
    handler(event | {"versionNumber": 0}, None)
    assert one.sessions.read().session
    assert store_actions == table_actions("workers-device_presence")


@measures("workers-device_inbox")
def test_policy_of_inbox_worker(
    home: DeviceBackend, one: DeviceUnderTest, store_actions: StoreActions, monkeypatch: pytest.MonkeyPatch
) -> None:
    from workers.device_inbox import handler

    leave_a_part_of_an_older_catalogue(one)
    notifications = Notifications(one.sessions._table, "local", one.id)
    monkeypatch.setattr("shared.devices.notifications.MAX_NOTIFICATIONS", 1)
    monkeypatch.setattr("shared.devices.notifications.random.randrange", lambda _: 0)
    notifications.add(DeviceNotification("notifications/old", {}), 1)
    store_actions.clear()

    def say(raw: bytes) -> None:
        payload = base64.b64encode(raw).decode()
        handler({"device_id": one.id, "payload": payload, "timestamp": int(time.time() * 1000)}, None)

    say(b'{"type":"mcp","payload":{"jsonrpc":"2.0","method":"notifications/new"}}')
    say(b'{"type":"hello","version":3,"features":{"mcp":true},"transport":"udp"}')
    assert one.sessions.read().session
    assert [each.method for each in notifications.page(10, None)[0]] == ["notifications/new"]
    assert store_actions == table_actions("workers-device_inbox")


@measures("boards-authorizer")
def test_policy_of_device_authorizer(tenant: str, store_actions: StoreActions) -> None:
    from boards.authorizer import handler

    device, password = registry().register(tenant, f"board-{uuid4().hex}")
    credentials = {"clientId": device.id, "username": device.id, "password": base64.b64encode(password.encode())}
    context = SimpleNamespace(invoked_function_arn="arn:aws:lambda:us-east-1:000000000000:function:kho")
    store_actions.clear()
    with variables_of("boards-authorizer"):
        assert handler({"protocolData": {"mqtt": credentials}}, context)["isAuthenticated"]
    assert store_actions == table_actions("boards-authorizer")


@measures("boards-check_in", "device_server-devices_claim", "device_server-devices_release")
def test_policies_of_onboarding(tenant: str, store_actions: StoreActions, monkeypatch: pytest.MonkeyPatch) -> None:
    from device_server import devices_claim, devices_release

    caller = Caller("tester", frozenset(ROLES), tenant)
    used: dict[str, StoreActions] = {}

    def measure(name: str, run: Callable[[], T]) -> T:
        store_actions.clear()
        result = run()
        used[name] = used.get(name, set()) | store_actions
        return result

    def ask_as_tenant(handler: Callable[..., Any], **params: Any) -> Any:
        call = {"method": "", "params": params, "caller": caller.record(), "correlation_id": "policy-test"}
        answer = handler(call, None)
        assert "result" in answer, answer
        return answer["result"]

    for name, value in BOARD_SETTINGS.items():
        monkeypatch.setenv(name, value)
    config.cache_clear()
    board = BoardCaller(source="198.51.100.9")

    def claim(code: str, **options: str) -> Any:
        return ask_as_tenant(devices_claim.handler, code=code, name="Kitchen", **options)

    def release() -> Any:
        return ask_as_tenant(devices_release.handler, device_id=board.board.device_id)

    for other in (tenant, f"{tenant}-other"):
        caller = Caller("tester", frozenset(ROLES), other)
        code = measure("boards-check_in", board.code)
        measure("device_server-devices_claim", partial(claim, code))
        firmware_releases(other).set("bread-compact-wifi", "2.4.3", "https://files.example/x.bin")
        for version in ("2.4.2", "2.4.3"):
            offered = partial(board.call, **{"user-agent": f"bread-compact-wifi/{version}"})
            assert measure("boards-check_in", offered)[0] == 200
        measure("device_server-devices_release", release)
    code = board.code()
    replaced = claim(BoardCaller(source="198.51.100.9").code())["device_id"]
    measure("device_server-devices_claim", partial(claim, code, replaces=replaced))
    release()
    code = board.code()
    table = registry()._table
    table.delete_all([keys.code_slot(int(code) % SLOTS)])
    values = {":soon": int(time.time()) + 60}
    pk, sk = keys.waiting_board(board.board.device_id)
    table.write(Write("Update", {"pk": pk, "sk": sk}, "SET expires_at = :soon", values=values))
    measure("boards-check_in", board.code)
    for name, actions in used.items():
        assert actions - {METERING} == table_actions(name), name
    monkeypatch.undo()
    config.cache_clear()


@measures("device_server-firmware_set", "device_server-firmware_list", "device_server-firmware_delete")
def test_policies_of_firmware(store_actions: StoreActions) -> None:
    from device_server import firmware_delete, firmware_list, firmware_set

    release = {"board": f"board-{uuid4().hex}", "version": "2.4.3", "url": "https://files.example/x.bin"}
    ask(firmware_set.handler, **release)
    for name, handler, params in (
        ("firmware_list", firmware_list.handler, {}),
        ("firmware_set", firmware_set.handler, release),
        ("firmware_delete", firmware_delete.handler, {"board": release["board"]}),
    ):
        leave_an_update("local", release["board"])
        store_actions.clear()
        ask(handler, **params)
        assert store_actions == table_actions(f"device_server-{name}"), name


def leave_an_update(tenant: str, board: str) -> None:
    """Leave a board that was offered firmware."""
    releases = firmware_releases(tenant)
    running = RunningFirmware.identify(f"{board}/1.0")
    assert running
    releases.offer("a-board", running)


@measures(
    "device_server-webhooks_set",
    "device_server-webhooks_get",
    "device_server-webhooks_delete",
    "workers-wake_webhooks",
    "workers-deliver_webhooks",
)
def test_policies_of_webhooks(tmp_path: Path, store_actions: StoreActions, monkeypatch: pytest.MonkeyPatch) -> None:
    from device_server import webhooks_delete, webhooks_get, webhooks_set
    from workers import deliver_webhooks, wake_webhooks

    started: list[Any] = []
    monkeypatch.setattr(wake_webhooks, "start", lambda _function, event: started.append(event))
    used: dict[str, StoreActions] = {}

    def measure(name: str, run: Callable[[], T]) -> T:
        store_actions.clear()
        result = run()
        used[name] = used.get(name, set()) | store_actions
        return result

    def store_event(number: int) -> Any:
        """Store an event of two seconds ago, and return its stream record."""
        at_ms = int(time.time() * 1000) - 2_000 + number
        write, *_ = webhooks("local").event_writes("presence", f"lamp-{number}", at_ms, {})
        registry()._table.write(write)
        found = {name: {"S": write.target[name]} for name in ("pk", "sk")}
        change = {"Keys": found, "SequenceNumber": "1"}
        return {"eventID": "0" * 32, "eventName": "INSERT", "dynamodb": change}

    with webhook_receiver(tmp_path) as receiver:
        monkeypatch.setattr("shared.devices.webhooks._client", lambda: receiver.client)
        settings = {"url": URL, "events": ["presence"]}
        measure("device_server-webhooks_set", partial(ask, webhooks_set.handler, **settings))
        values = {":then": "2026-01-01T00:00:00.000Z"}
        key = {"pk": keys.webhook("local"), "sk": keys.WEBHOOK}
        registry()._table.write(Write("Update", key, "SET created_at = :then", values=values))
        measure("device_server-webhooks_set", partial(ask, webhooks_set.handler, **settings))
        for number, status in enumerate((204, 500)):
            receiver.status = lambda _event, status=status: status  # type: ignore[misc] # the loop's value
            event = {"Records": [store_event(number)]}
            assert measure("workers-wake_webhooks", partial(wake_webhooks.handler, event, None)) == {
                "batchItemFailures": []
            }
            assert started.pop() == {"tenant_id": "local"}
            measure("workers-deliver_webhooks", partial(deliver_webhooks.handler, {"tenant_id": "local"}, None))
        measure("workers-wake_webhooks", partial(wake_webhooks.handler, {"source": "aws.events"}, None))
        measure("device_server-webhooks_get", partial(ask, webhooks_get.handler))
        measure("device_server-webhooks_delete", partial(ask, webhooks_delete.handler))
        measure("workers-deliver_webhooks", partial(deliver_webhooks.handler, {"tenant_id": "local"}, None))
    for name, actions in used.items():
        assert actions - {METERING} == table_actions(name), name


@measures("boards-provisioning")
def test_policy_of_device_provisioning(tenant: str, store_actions: StoreActions) -> None:
    from boards.provisioning import handler

    device, password = registry().register(tenant, f"board-{uuid4().hex}")
    store_actions.clear()
    event = {"parameters": {"SerialNumber": device.id, "Password": password}}
    with variables_of("boards-provisioning"):
        assert handler(event, None) == {"allowProvisioning": True}
    assert store_actions == table_actions("boards-provisioning")
