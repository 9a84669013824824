"""Registration, lookup, authentication and revocation of devices."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from shared.aws.dynamodb import Table
from shared.devices.registry import DeviceRegistry, registry
from shared.platform.config import config
from shared.rpc.errors import Conflict, InvalidParams, NotFound, NotSignedIn

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def devices() -> DeviceRegistry:
    return registry()


@pytest.fixture
def device_id() -> str:
    """Return a new device id."""
    return f"board-{uuid4().hex}"


@pytest.fixture
def authorizing(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("KHO_AUTH", "required")
    config.cache_clear()
    yield
    monkeypatch.undo()
    config.cache_clear()


def test_device_belongs_to_its_tenant_and_authenticates_by_password(
    devices: DeviceRegistry, tenant: str, device_id: str
) -> None:
    device, password = devices.register(tenant, device_id, name="Kitchen", downlink="publish")
    assert (device.id, device.tenant_id, device.name, device.downlink) == (device_id, tenant, "Kitchen", "publish")
    assert (
        devices.find(tenant, device_id)
        == devices.require(tenant, device_id)
        == devices.find_any_tenant(device_id)
        == device
    )
    assert devices.owner(device_id) == tenant
    assert devices.verify(device_id, device_id, password.encode()) == device
    assert devices.verify(device_id, f"{device_id}?x-amz-customauthorizer-name=kho", password.encode()) == device
    for user_name in ("", "other", f"{device_id} ", f"?{device_id}"):
        with pytest.raises(NotSignedIn):
            devices.verify(device_id, user_name, password.encode())
    for wrong in (password[:-1], "", password.upper() + "0"):
        with pytest.raises(NotSignedIn):
            devices.verify(device_id, device_id, wrong.encode())
    with pytest.raises(NotSignedIn):
        devices.verify(f"{device_id}x", f"{device_id}x", password.encode())


def test_table_contains_no_password(devices: DeviceRegistry, tenant: str, device_id: str) -> None:
    _, password = devices.register(tenant, device_id)
    listed = [item for page in Table(config().devices_table).scan("") for item in page]
    assert any(each["sk"] == device_id for each in listed)
    assert password not in str(listed)


def test_other_tenant_does_not_see_the_device(devices: DeviceRegistry, tenant: str, device_id: str) -> None:
    devices.register(tenant, device_id)
    assert devices.find(f"{tenant}-other", device_id) is None
    assert devices.page(f"{tenant}-other", 10) == ([], None)
    with pytest.raises(NotFound):
        devices.require(f"{tenant}-other", device_id)
    with pytest.raises(Conflict):
        devices.register(f"{tenant}-other", device_id)


def test_revoked_device_is_rejected_until_registered_again(
    devices: DeviceRegistry, tenant: str, device_id: str
) -> None:
    _, password = devices.register(tenant, device_id)
    with pytest.raises(Conflict):
        devices.register(tenant, device_id)
    first = devices.revoke(device_id)
    assert devices.revoke(device_id) == first
    assert first.revoked_at
    with pytest.raises(NotSignedIn):
        devices.verify(device_id, device_id, password.encode())
    assert devices.find(tenant, device_id) is None
    assert devices.page(tenant, 10) == ([], None)
    assert devices.page(tenant, 10, with_revoked=True) == ([first], None)
    device, second = devices.register(tenant, device_id)
    assert devices.verify(device_id, device_id, second.encode()) == device
    with pytest.raises(NotSignedIn):
        devices.verify(device_id, device_id, password.encode())


def test_revoked_device_can_be_registered_by_another_tenant(
    devices: DeviceRegistry, tenant: str, device_id: str
) -> None:
    devices.register(tenant, device_id)
    devices.revoke(device_id)
    devices.register(f"{tenant}-other", device_id)
    assert devices.owner(device_id) == f"{tenant}-other"
    assert devices.page(tenant, 10, with_revoked=True) == ([], None)


def test_revoking_unknown_device_fails(devices: DeviceRegistry, device_id: str) -> None:
    for unknown in (device_id, "", "a/b", "#", "x" * 500):
        with pytest.raises(NotFound):
            devices.revoke(unknown)


@pytest.mark.parametrize("wrong", ["", "a b", "a/b", "a+b", "#", "$a", "a.b", "é", "x" * 129, "kho-backend-1", "a\n"])
def test_invalid_thing_name_is_rejected(devices: DeviceRegistry, tenant: str, wrong: str) -> None:
    with pytest.raises(ValueError, match="cannot be a device's id"):
        devices.register(tenant, wrong)


def test_pages_join_without_repeat_or_gap(devices: DeviceRegistry, tenant: str) -> None:
    ids = [f"{uuid4().hex}-{number}" for number in range(7)]
    for each in ids:
        devices.register(tenant, each)
    for each in sorted(ids)[2:4]:
        devices.revoke(each)
    remaining = [each for each in sorted(ids) if each not in sorted(ids)[2:4]]
    for limit in (1, 2, 3, 5, 7):
        listed: list[str] = []
        cursor = None
        while True:
            page, cursor = devices.page(tenant, limit, cursor)
            assert len(page) <= limit
            listed += [device.id for device in page]
            if cursor is None:
                break
        assert listed == remaining
    with pytest.raises(InvalidParams):
        devices.page(tenant, 1, "nonsense")


def test_open_mode_registers_on_first_connect(devices: DeviceRegistry, device_id: str) -> None:
    odd = f"{device_id} ẩm.thực"
    with ThreadPoolExecutor(8) as pool:
        listed = list(pool.map(lambda _: devices.find_or_register(odd), range(8)))
    assert len({device.created_at for device in listed if device}) == 1
    assert [device.tenant_id for device in listed if device] == ["local"] * 8
    assert devices.find("local", odd) == listed[0]
    for invalid in ("kho-backend-1", "a/b", "$x", "+", ""):
        assert devices.find_or_register(invalid) is None


def test_auto_registered_device_can_be_registered(devices: DeviceRegistry, tenant: str, device_id: str) -> None:
    devices.find_or_register(device_id)
    with pytest.raises(NotSignedIn):
        devices.verify(device_id, device_id, b"")
    device, password = devices.register(tenant, device_id)
    assert devices.find("local", device_id) is None
    assert devices.find_or_register(device_id) == device == devices.verify(device_id, device_id, password.encode())


def test_connecting_does_not_register_when_keys_are_required(
    authorizing: None, devices: DeviceRegistry, tenant: str, device_id: str
) -> None:
    assert devices.find_or_register(device_id) is None
    device, _ = devices.register(tenant, device_id)
    assert devices.find_or_register(device_id) == device


def test_concurrent_registrations_have_one_winner(tenant: str, device_id: str) -> None:
    def register(number: int) -> str | None:
        try:
            return DeviceRegistry(Table(config().devices_table)).register(f"{tenant}-{number % 2}", device_id)[1]
        except Conflict:
            return None

    with ThreadPoolExecutor(8) as pool:
        passwords = [listed for listed in pool.map(register, range(8)) if listed]
    assert len(passwords) == 1
    assert registry().verify(device_id, device_id, passwords[0].encode()).id == device_id
