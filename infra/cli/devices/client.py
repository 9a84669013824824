"""Client of device-server for commands: in this process on local data, or a deployed endpoint over HTTP."""

from __future__ import annotations

import secrets
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from cyclopts import Parameter

from infra.cli.target import DataTarget, exit_with_error, open_stores
from infra.local.data_folder import running_server
from shared.rpc.caller import LOCAL, ROLES, Caller

if TYPE_CHECKING:
    from collections.abc import Iterator

_SERVER: Final = "device-server"
_TIMEOUT_SECONDS: Final = 30.0


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class DeviceTarget:
    """The tenant and the installation that commands work on.

    Parameters
    ----------
    tenant
        The devices' tenant. At an endpoint the key determines it.
    data
        The local data folder.
    endpoint
        A deployed Kho; its key is in KHO_KEY or in the keyring (service 'kho', user the endpoint).
    """

    tenant: str = LOCAL.tenant_id
    data: Path = Path(".kho")
    endpoint: str = ""


DEFAULT_TARGET: Final = DeviceTarget()


class DeviceServerClient(Protocol):
    """A function that calls a method of device-server."""

    def __call__(self, method: str, **params: Any) -> Any:
        """Return the result as plain JSON values. An error exits the command."""


@contextmanager
def open_client(target: DeviceTarget) -> Iterator[DeviceServerClient]:
    """Open a client of the target's device-server."""
    if target.endpoint:
        yield _remote_client(target.endpoint)
        return
    with open_stores(DataTarget(target.data)):
        yield _local_client(target)


def has_broker(target: DeviceTarget) -> bool:
    """Return True if the target has a broker for devices."""
    return bool(target.endpoint) or running_server(target.data) is not None


def _remote_client(endpoint: str) -> DeviceServerClient:
    from infra.agent.backend import BackendError, RemoteBackend
    from infra.agent.runner import api_key_for

    def call(method: str, **params: Any) -> Any:
        try:
            return RemoteBackend(endpoint, api_key_for(endpoint), _TIMEOUT_SECONDS, _SERVER).call(method, params)
        except BackendError as error:
            exit_with_error(f"{error.message} {error.data.get('guidance', '')}".rstrip())

    return call


def _local_client(target: DeviceTarget) -> DeviceServerClient:
    """Run the functions in this process, on the data folder and the running server's broker, if any."""
    from infra.local.functions import Functions
    from infra.local.iot_core import BrokerAddress, configure_functions
    from infra.local.template import load
    from shared.rpc import invoke
    from shared.rpc.errors import KhoError

    if server := running_server(target.data):
        configure_functions(BrokerAddress(server["mqtt_url"], server["mqtt_token"], server["data_plane_url"]))
    invoke.use_transport(Functions(load().functions))
    caller = Caller("kho-devices", frozenset(ROLES), target.tenant)

    def call(method: str, **params: Any) -> Any:
        function = f"device_server-{method.replace('/', '_')}"
        try:
            return invoke.invoke(function, f"{_SERVER}/{method}", params, caller, secrets.token_hex(16))
        except KhoError as error:
            exit_with_error(f"{error.message} {error.guidance}")

    return call
