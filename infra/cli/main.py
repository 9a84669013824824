"""The `kho` command."""

from __future__ import annotations

import errno
import os
import socket
import sys
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

from botocore.exceptions import BotoCoreError, ClientError
from cyclopts import App
from cyclopts.config import Env

from infra.cli.devices.app import devices
from infra.cli.devices.broker import host_and_port
from infra.cli.doctor.command import doctor
from infra.cli.keys import keys
from infra.cli.qdrant import qdrant
from infra.cli.reindex import reindex
from infra.cli.tenants import tenant
from infra.local.broker.limits import Limits
from infra.local.data_folder import DataFolderInUse, lock_folder
from infra.local.dynamodb import DURABLE, Engine, EngineFailed, connect
from infra.local.environment import point_at_store, prepare
from infra.local.sockets import listen
from infra.local.template import load
from shared.config import Auth  # noqa: TC001 - cyclopts reads it

if TYPE_CHECKING:
    from collections.abc import Sequence

app: Final = App(
    version=lambda: version("kho"),
    name="kho",
    help="A storehouse for AI agents: documents, memory, experiences, knowledge and devices.",
    config=Env("KHO_", command=False),
)
app.command(keys)
app.command(devices)
app.command(doctor)
app.command(tenant)
app.command(reindex)
app.command(qdrant)
_MQTT_PORT: Final = 1883
_CONNECT_SECONDS: Final = 5
_UNPACKING_SECONDS: Final = 10
"""Of a PDF that a request waits for, and then for its embedding."""
_LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")


@app.command
def serve(  # noqa: PLR0913 - one argument an option
    *,
    host: str = "127.0.0.1",
    port: int = 8001,
    mqtt_port: int | None = None,
    mqtt_rate: int = 100,
    mqtt_url: str = "",
    mqtt_token: str = "",
    data: Path = Path(".kho"),
    auth: Auth = "open",
    aws_endpoint: str = "",
    qdrant_url: str = "",
    root: tuple[Path, ...] = (),
) -> None:
    """Serve template.yaml on this machine, with everything embedded.

    Parameters
    ----------
    host
        The address to listen on; any but a loopback address needs --auth required.
    port
        The port of HTTP; 0 takes a free one.
    mqtt_port
        The port of the devices' MQTT broker: 1883, or a free one where that is taken; 0 takes a free one.
    mqtt_rate
        How many messages a second one connection may publish, as with IoT Core; 0 lifts the limit.
    mqtt_url
        A broker such as mqtt://127.0.0.1:1883 to use in place of the embedded one; it lets in whom it knows.
    mqtt_token
        The password of the user 'kho' there, where it asks for one.
    data
        The folder that keeps all data.
    auth
        open: everyone is the tenant 'local'. required: callers need a key, see 'kho keys create'.
    aws_endpoint
        A DynamoDB endpoint to use in place of the embedded store.
    qdrant_url
        A Qdrant server to use in place of the embedded engine; KHO_QDRANT_KEY is its key.
    root
        A folder whose files ingestions may read, where the address is a loopback one; without, the working folder.
    """
    if auth == "open" and host not in _LOOPBACK:
        _exit_with_error(
            f"{host} is not a loopback address: serve it with --auth required, and make keys with 'kho keys create'."
        )
    template = load()
    data = data.resolve()
    with ExitStack() as stack:
        try:
            stack.enter_context(lock_folder(data))
        except DataFolderInUse as error:
            _exit_with_error(f"{error}. Choose another folder with --data.")
        except OSError as error:
            _exit_with_error(f"{data} cannot be used: {error.strerror}. Choose another folder with --data.")
        listener = _listen(host, port, "--port (KHO_PORT)")
        stack.callback(listener.close)
        mqtt_listener = None if mqtt_url else _listen_for_devices(host, mqtt_port)
        if mqtt_listener:
            stack.callback(mqtt_listener.close)
        else:
            _check_broker(mqtt_url)
        if qdrant_url:
            os.environ["KHO_QDRANT_URL"] = qdrant_url
        prepare(
            template,
            auth=auth,
            log_file=data / "kho.log",
            passages=data / "passages",
            own_account=bool(aws_endpoint),
        )
        store_url = _check_endpoint(aws_endpoint) if aws_endpoint else _start_store(stack, data)
        point_at_store(store_url)

        from infra.local import iot_core  # they read their settings as they are imported
        from infra.local import serve as machine
        from shared.config import ConfigurationError, config
        from shared.language_model import language_model

        try:
            config()
            language_model()
        except ConfigurationError as error:
            _exit_with_error(str(error))
        if host in _LOOPBACK:
            _allow_reading(root or (Path(),))
        authorizing = auth == "required"
        limits = Limits(publishes_per_second=mqtt_rate or None)
        machine.run(
            template,
            listener,
            iot_core.run_embedded(mqtt_listener, limits, authorizing=authorizing)
            if mqtt_listener
            else iot_core.use_external(mqtt_url, mqtt_token),
            data,
            store_url,
            authorizing=authorizing,
            durable=bool(aws_endpoint) or DURABLE,
        )


@app.command
def generate(*, check: bool = False) -> None:
    """Make the catalogue of methods and the reference pages from the functions.

    Parameters
    ----------
    check
        Change nothing; fail where something would change.
    """
    from infra.deploy.generate import generate_all

    stale = generate_all(write=not check)
    if check and stale:
        _exit_with_error(f"Not what the functions say: {', '.join(stale)}. Run 'make generate'.")


def _listen(host: str, port: int, option: str) -> socket.socket:
    try:
        return listen(host, port)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            _exit_with_error(f"Port {port} is taken. Stop what listens there, or choose another with {option}.")
        _exit_with_error(f"Cannot listen on {host}, port {port}: {error.strerror}.")
    except OverflowError:
        _exit_with_error(f"{port} is no port: {option} takes 0 to 65535.")


def _listen_for_devices(host: str, port: int | None) -> socket.socket:
    if port is not None:
        return _listen(host, port, "--mqtt-port (KHO_MQTT_PORT)")
    try:
        return listen(host, _MQTT_PORT)
    except OSError:  # nobody asked for this port: another broker on the machine must not keep everything from starting
        return _listen(host, 0, "--mqtt-port (KHO_MQTT_PORT)")


def _allow_reading(roots: Sequence[Path], *, unpacking_seconds: int = _UNPACKING_SECONDS) -> None:
    """Allow ingestions to read this machine's files under `roots`: the callers are on this machine."""
    from infra.agent.files.reader import FileReader
    from infra.agent.files.roots import Roots
    from shared.knowledge import file_source

    file_source.use_reader(FileReader(Roots(roots), unpacking_seconds))


def _check_broker(url: str) -> None:
    host, port = host_and_port(url, ("mqtt", "mqtts"))
    try:
        socket.create_connection((host, port), timeout=_CONNECT_SECONDS).close()
    except OSError as error:
        _exit_with_error(
            f"No broker answers at {url} ({error.strerror or 'no answer'}). Correct --mqtt-url, or leave it out."
        )


def _check_endpoint(endpoint: str) -> str:
    try:
        connect(endpoint).list_tables(Limit=1)
    except (ValueError, BotoCoreError, ClientError) as error:
        _exit_with_error(
            f"No DynamoDB answers at {endpoint} ({type(error).__name__}). Correct --aws-endpoint, or leave it out."
        )
    return endpoint


def _start_store(stack: ExitStack, data: Path) -> str:
    try:
        engine = Engine(data / "dynamodb.sqlite", data / "store.log")
    except EngineFailed as error:
        _exit_with_error(f"{error}. Its own words are in {data / 'store.log'}.")
    stack.callback(engine.close)
    return engine.url


def _exit_with_error(message: str) -> NoReturn:
    sys.exit(f"kho: {message}")


def main() -> None:
    """Run the command line."""
    app()
