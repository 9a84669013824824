"""`kho devices register`, `revoke` and `rotate`."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

from infra.clients.cli.devices import broker
from infra.clients.cli.target import DEFAULT_TARGET, AsJson, DataTarget, exit_with_error, open_stores, require_tenant_id
from shared.devices import ids
from shared.rpc.caller import LOCAL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shared.devices.registry import DeviceRegistry, Downlink

_KEEPALIVE_SECONDS: Final = 240


def register(  # noqa: PLR0913 - one argument per option
    device_id: str,
    /,
    *,
    tenant: str = LOCAL.tenant_id,
    name: str = "",
    subscribes: Annotated[bool, Parameter(negative=())] = False,
    target: DataTarget = DEFAULT_TARGET,
    as_json: AsJson = False,
) -> None:
    """Register a device; its password is shown once and stored only as a hash.

    Args:
        device_id: Its client id: letters, digits and : _ - , such as its MAC address.
        tenant: The tenant that owns it.
        name: A display name; by default its id.
        subscribes: The device subscribes to its topic and is reached by publishing there; stock firmware does not.
    """
    require_tenant_id(tenant)
    if not ids.may_be_registered(device_id):
        exit_with_error(f"'{device_id}' cannot be a device: an id is 1 to 128 letters, digits and : _ - .")
    if len(name) > 128 or not name.isprintable():
        exit_with_error("A name is at most 128 printable characters.")
    with _registry(target, create=True) as registry:
        downlink: Downlink = "publish" if subscribes else "direct"
        device, password = registry.register(tenant, device_id, name=name, downlink=downlink)
        settings = {
            "endpoint": broker.broker_endpoint(target),
            "client_id": device.id,
            "username": device.id,
            "password": password,
            "keepalive": _KEEPALIVE_SECONDS,
            "publish_topic": ids.up(device.id),
            **({"subscribe_topic": ids.down(device.id)} if subscribes else {}),
        }
    if as_json:
        print(json.dumps({"device": asdict(device), "mqtt": settings}))
        return
    print(f"Device {device.id} ({device.name}): tenant {device.tenant_id}.")
    print("Firmware settings:\n")
    for setting, value in settings.items():
        print(f"  {setting:<15}  {value or 'host:port of the broker, without a scheme'}")
    print("\nKeep the password: it is not shown again.")


def revoke(device_id: str, /, *, target: DataTarget = DEFAULT_TARGET, as_json: AsJson = False) -> None:
    """Revoke a device: its connection is closed; its password and certificates become invalid.

    Args:
        device_id: Its id, from 'kho devices list'.
    """
    with _registry(target) as registry:
        device = registry.revoke(device_id)
        broker.disconnect(target, device.id)
    print(json.dumps(asdict(device)) if as_json else f"Device {device.id} is revoked since {device.revoked_at}.")


def rotate(device_id: str, /, *, target: DataTarget = DEFAULT_TARGET, as_json: AsJson = False) -> None:
    """Make the password of a claimed board invalid; it gets the next one when it is switched on again.

    Args:
        device_id: Its id, from 'kho devices list'.
    """
    with _registry(target) as registry:
        device = registry.rotate(device_id)
        broker.disconnect(target, device.id)
    text = f"The password of {device.id} is invalid. Switch the board off and on: it checks in and gets the next one."
    print(json.dumps(asdict(device)) if as_json else text)


@contextmanager
def _registry(target: DataTarget, *, create: bool = False) -> Iterator[DeviceRegistry]:
    with open_stores(target, create=create):
        from shared.devices.registry import registry  # reads its settings on import

        yield registry()
