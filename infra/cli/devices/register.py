"""`kho devices register` and `revoke`: what lets a device in."""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

from infra.cli.devices import broker
from infra.cli.target import DEFAULT_TARGET, DataTarget, exit_with_error, open_stores
from shared.devices import ids
from shared.rpc.caller import LOCAL, TENANT_ID

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shared.devices.registry import DeviceRegistry, Downlink

AsJson = Annotated[bool, Parameter(name="--json", negative=())]

_KEEPALIVE_SECONDS: Final = 240


def register(  # noqa: PLR0913 - one argument an option
    device_id: str,
    /,
    *,
    tenant: str = LOCAL.tenant_id,
    name: str = "",
    subscribes: Annotated[bool, Parameter(negative=())] = False,
    where: DataTarget = DEFAULT_TARGET,
    as_json: AsJson = False,
) -> None:
    """Register a device; its password is shown this once, and nowhere kept.

    Parameters
    ----------
    device_id
        Its client id: letters, digits and : _ - , such as its MAC address.
    tenant
        Whose it is.
    name
        What people call it; without, its id.
    subscribes
        It subscribes to its topic, and is reached by publishing there; stock firmware never does.
    as_json
        Print JSON.
    """
    if not re.fullmatch(TENANT_ID, tenant):
        exit_with_error(f"'{tenant}' cannot be a tenant: 1 to 128 letters, digits and . _ @ : - inside.")
    if not ids.may_be_registered(device_id):
        exit_with_error(f"'{device_id}' cannot be a device: 1 to 128 letters, digits and : _ - are its id.")
    if len(name) > 128 or not name.isprintable():
        exit_with_error("A name is at most 128 printable characters.")
    with _registry(where) as registry:
        downlink: Downlink = "publish" if subscribes else "direct"
        device, password = registry.register(tenant, device_id, name=name, downlink=downlink)
        settings = {
            "endpoint": broker.broker_endpoint(where),
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
    print("The settings of its firmware:\n")
    for setting, value in settings.items():
        print(f"  {setting:<15}  {value or 'where kho serve says that devices connect to'}")
    print("\nKeep the password: it is not shown again.")


def revoke(device_id: str, /, *, where: DataTarget = DEFAULT_TARGET, as_json: AsJson = False) -> None:
    """Revoke a device: its connection ends, its password and certificates let it in no more.

    Parameters
    ----------
    device_id
        Its id, from 'kho devices list'.
    as_json
        Print JSON.
    """
    with _registry(where) as registry:
        device = registry.revoke(device_id)
        broker.disconnect(where, device.id)
    print(json.dumps(asdict(device)) if as_json else f"Device {device.id} is revoked since {device.revoked_at}.")


@contextmanager
def _registry(where: DataTarget) -> Iterator[DeviceRegistry]:
    with open_stores(where):
        from shared.devices.registry import registry  # reads its settings as it is imported

        yield registry()
