"""device-server's methods, as commands ask them: on this machine's data, or a deployed one by its endpoint."""

from __future__ import annotations

import secrets
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from cyclopts import Parameter

from infra.cli import target
from infra.cli.target import exit_with_error, open_stores
from infra.local.data_folder import running_server
from shared.rpc.caller import LOCAL, ROLES, Caller

if TYPE_CHECKING:
    from collections.abc import Iterator

_SERVER: Final = "device-server"
_TIMEOUT_SECONDS: Final = 30.0


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class DeviceTarget:
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


DEFAULT_TARGET: Final = DeviceTarget()


class DeviceServerClient(Protocol):
    """Asks a method of device-server."""

    def __call__(self, method: str, **params: Any) -> Any:
        """The result as plain JSON values; an error ends the command."""


@contextmanager
def open_client(where: DeviceTarget) -> Iterator[DeviceServerClient]:
    """What asks the methods of device-server where they are."""
    if where.endpoint:
        yield _remote_client(where.endpoint)
        return
    with open_stores(target.DataTarget(where.data)):
        yield _local_client(where)


def has_broker(where: DeviceTarget) -> bool:
    """Whether there is a broker for devices to be connected to."""
    return bool(where.endpoint) or running_server(where.data) is not None


def _remote_client(endpoint: str) -> DeviceServerClient:
    from infra.agent.backend import BackendError, RemoteBackend
    from infra.agent.runner import api_key_for

    def ask(method: str, **params: Any) -> Any:
        try:
            return RemoteBackend(endpoint, api_key_for(endpoint), _TIMEOUT_SECONDS, _SERVER).call(method, params)
        except BackendError as error:
            exit_with_error(f"{error.message} {error.data.get('guidance', '')}".rstrip())

    return ask


def _local_client(where: DeviceTarget) -> DeviceServerClient:
    """The functions in this process, on the store and the broker of the server, if one runs."""
    from infra.local.functions import Functions
    from infra.local.iot_core import BrokerAddress, configure_functions
    from infra.local.template import load
    from shared.rpc import invoke
    from shared.rpc.errors import KhoError

    if running := running_server(where.data):
        configure_functions(BrokerAddress(running["mqtt_url"], running["mqtt_token"], running["data_plane_url"]))
    invoke.use_transport(Functions(load().functions))
    caller = Caller("kho-devices", frozenset(ROLES), where.tenant)

    def ask(method: str, **params: Any) -> Any:
        function = f"device_server-{method.replace('/', '_')}"
        try:
            return invoke.invoke(function, f"{_SERVER}/{method}", params, caller, secrets.token_hex(16))
        except KhoError as error:
            exit_with_error(f"{error.message} {error.guidance}")

    return ask
