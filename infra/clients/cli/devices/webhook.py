"""`kho devices webhook`: the address to which the events of a tenant's devices are sent."""

import json
from typing import Final

from cyclopts import App

from infra.clients.cli.devices.client import DEFAULT_TARGET, DeviceTarget, open_client
from infra.clients.cli.target import AsJson
from shared.devices.webhooks import EVENT_KINDS, EventKind

webhook: Final = App(name="webhook", help="The address to which the events of a tenant's devices are sent.")


@webhook.command(name="set")
def set_(
    url: str,
    /,
    *,
    event: tuple[EventKind, ...] = EVENT_KINDS,
    target: DeviceTarget = DEFAULT_TARGET,
    as_json: AsJson = False,
) -> None:
    """Set the address, and send it a first event. The secret of the signatures is shown once.

    Args:
        url: The https:// address, of a public host and without redirects.
        event: A kind of event; may be given several times. By default all.
    """
    with open_client(target) as client:
        created = client.call("webhooks/set", {"url": url, "events": list(event)})
    text = f"{created['test']}\nSecret: {created['secret']}\nKeep it: it is not shown again."
    print(json.dumps(created) if as_json else text)


@webhook.command
def get(*, target: DeviceTarget = DEFAULT_TARGET, as_json: AsJson = False) -> None:
    """Show the address, and the state of the deliveries."""
    with open_client(target) as client:
        state = client.call("webhooks/get", {})
    lines = (f"{name:<16} {', '.join(value) if isinstance(value, list) else value}" for name, value in state.items())
    print(json.dumps(state) if as_json else "\n".join(lines))


@webhook.command
def delete(*, target: DeviceTarget = DEFAULT_TARGET, as_json: AsJson = False) -> None:
    """Remove the address, and the events that wait."""
    with open_client(target) as client:
        deleted = client.call("webhooks/delete", {})
    print(json.dumps(deleted) if as_json else f"{deleted['url']} gets no more events.")
