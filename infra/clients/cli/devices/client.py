"""Client of device-server for commands: in this process on local data, or a deployed endpoint over HTTP."""

from __future__ import annotations

from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path  # noqa: TC003 - the command line reads annotations
from typing import TYPE_CHECKING, Final

from cyclopts import Parameter

from infra.clients.agent.backend import BackendError, EmbeddedBackend, RemoteBackend, api_key_for
from infra.clients.cli.target import DataTarget, exit_with_error, open_stores
from infra.local.data_folder import DEFAULT_DATA, running_server
from shared.rpc.caller import LOCAL, ROLES, Caller

if TYPE_CHECKING:
    from collections.abc import Iterator

    from infra.clients.agent.backend import Backend

_SERVER: Final = "device-server"
_TIMEOUT_SECONDS: Final = 30.0


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class DeviceTarget:
    """The tenant and the installation that commands work on.

    Args:
        tenant: The devices' tenant. At an endpoint the key determines it.
        data: The local data folder.
        endpoint: A deployed Kho; its key is in KHO_KEY or in the keyring (service 'kho', user the endpoint).
    """

    tenant: str = LOCAL.tenant_id
    data: Path = DEFAULT_DATA
    endpoint: str = ""


DEFAULT_TARGET: Final = DeviceTarget()


@contextmanager
def open_client(target: DeviceTarget) -> Iterator[Backend]:
    """Open a client of the target's device-server. An error of a call ends the command."""
    try:
        if target.endpoint:
            key = api_key_for(target.endpoint)
            with closing(RemoteBackend(target.endpoint, key, _TIMEOUT_SECONDS, _SERVER)) as backend:
                yield backend
        else:
            with open_stores(DataTarget(target.data)):
                yield _embedded_backend(target)
    except BackendError as error:
        details = error.data.get("details")
        problems = [f"{each['field']}: {each['message']}" for each in details] if isinstance(details, list) else []
        message = f"{error.message}: {', '.join(problems)}." if problems else error.message
        exit_with_error(f"{message} {error.data.get('guidance', '')}".rstrip())


def has_broker(target: DeviceTarget) -> bool:
    """Return True if the target has a broker for devices."""
    return bool(target.endpoint) or running_server(target.data) is not None


def _embedded_backend(target: DeviceTarget) -> EmbeddedBackend:
    """Run the functions in this process, on the data folder and the running server's broker, if any."""
    from infra.local.environment import set_variables
    from infra.local.functions import Functions
    from infra.local.iot.iot_core import BrokerAddress, configure_functions
    from infra.local.template import load
    from shared.platform.runtime import runtime

    if server := running_server(target.data):
        # A session that this process starts offers the server's explanation of photos too.
        set_variables({"KHO_BOARD_URL": server["board_url"], "KHO_MODEL_PROVIDER": server["model_provider"]})
        configure_functions(BrokerAddress(server["mqtt_url"], server["mqtt_token"], server["data_plane_url"]))
    runtime.functions = Functions(load().functions)
    return EmbeddedBackend(_SERVER, Caller("kho-devices", frozenset(ROLES), target.tenant))
