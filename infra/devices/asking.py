"""device-server's methods, as commands ask them: on this machine's data, or a deployed one by its endpoint."""

from __future__ import annotations

import secrets
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from cyclopts import Parameter

from infra import stores
from infra.devices.broker import running_on
from infra.stores import end, reached
from shared.rpc.caller import LOCAL, ROLES, Caller

if TYPE_CHECKING:
    from collections.abc import Iterator

_SERVER: Final = "device-server"
_ANSWER_SECONDS: Final = 30.0


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Where:
    """Whose devices.

    Parameters
    ----------
    tenant
        The tenant whose they are; at an endpoint the key says so.
    data
        The data folder of this machine.
    endpoint
        A deployed Kho, its key in KHO_KEY or in the keyring (service 'kho', user the endpoint).
    """

    tenant: str = LOCAL.tenant_id
    data: Path = Path(".kho")
    endpoint: str = ""


HERE: Final = Where()


class Ask(Protocol):
    """Asks a method of device-server."""

    def __call__(self, method: str, **params: Any) -> Any:
        """The result as plain JSON values; an error ends the command."""


@contextmanager
def asking(where: Where) -> Iterator[Ask]:
    """What asks the methods of device-server where they are."""
    if where.endpoint:
        yield _remote(where.endpoint)
        return
    with reached(stores.Where(where.data)):
        yield _here(where)


def is_served(where: Where) -> bool:
    """Whether there is a broker for devices to be connected to."""
    return bool(where.endpoint) or running_on(where.data) is not None


def _remote(endpoint: str) -> Ask:
    from infra.research.asking import key_for
    from infra.research.backend import Refused, Remote

    def ask(method: str, **params: Any) -> Any:
        try:
            return Remote(endpoint, key_for(endpoint), _ANSWER_SECONDS, _SERVER).call(method, params)
        except Refused as error:
            end(f"{error.message} {error.data.get('guidance', '')}".rstrip())

    return ask


def _here(where: Where) -> Ask:
    """The functions in this process, on the store and the broker of the server, if one runs."""
    from infra.local.functions import Functions
    from infra.local.iot import Reached, point_at
    from infra.local.template import load
    from shared.rpc import invoke
    from shared.rpc.errors import KhoError

    if running := running_on(where.data):
        point_at(Reached(running["mqtt_url"], running["mqtt_token"], running["data_plane_url"]))
    invoke.use(Functions(load().functions))
    caller = Caller("kho-devices", frozenset(ROLES), where.tenant)

    def ask(method: str, **params: Any) -> Any:
        function = f"device_server-{method.replace('/', '_')}"
        try:
            return invoke.invoke(function, f"{_SERVER}/{method}", params, caller, secrets.token_hex(16))
        except KhoError as error:
            end(f"{error.message} {error.guidance}")

    return ask
