"""`kho serve`: everything on this machine."""

import contextlib
import errno
import os
import re
import shlex
import socket
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final, Literal

from botocore.exceptions import BotoCoreError, ClientError

from infra.clients.cli.devices.broker import host_and_port
from infra.clients.cli.target import exit_with_error
from infra.clients.console.bundle import BundleError, bundle
from infra.local import serve as machine
from infra.local.components import ComponentUnavailable, provide_model
from infra.local.data_folder import DEFAULT_DATA, DataFolderError, lock_folder
from infra.local.dynamodb import DURABLE, connect, create_tables
from infra.local.environment import point_at_store, prepare
from infra.local.integrity import start_checks
from infra.local.iot import iot_core
from infra.local.iot.broker.limits import Limits
from infra.local.shutdown import GRACE_SECONDS, Shutdown
from infra.local.sockets import address_of, listen, network_address_of
from infra.local.store import StoreUnavailable, start_engine
from infra.local.template import Template, load
from infra.local.workers.nursery import SUPPORTED, Nursery
from infra.local.workers.owned_functions import functions_of_workers
from infra.local.workers.pool import WorkerParts
from infra.local.workers.shared_indexes import SharedIndexes
from shared.platform.config import Auth
from shared.platform.runtime import runtime
from shared.search.cpu_count import cpu_count

_MQTT_PORT: Final = 1883
_CONNECT_SECONDS: Final = 5
_PDF_SECONDS: Final = 10
"""The time limit for extracting a PDF within a request, which then also waits for the embedding."""
_MAX_GRACE_SECONDS: Final = 3600
_MAX_WORKERS: Final = 64
_LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")


def serve(  # noqa: PLR0913 - one argument an option
    *,
    host: str = "127.0.0.1",
    port: int = 8001,
    mqtt_port: int | None = None,
    mqtt_rate: int = 100,
    mqtt_url: str = "",
    mqtt_token: str = "",
    data: Path = DEFAULT_DATA,
    auth: Auth = "open",
    aws_endpoint: str = "",
    store: Literal["private", "loopback"] = "private",
    qdrant_url: str = "",
    root: tuple[Path, ...] = (),
    cors_origins: str = "",
    public_url: str = "",
    workers: int | None = None,
    grace_seconds: float = GRACE_SECONDS,
) -> None:
    """Serve template.yaml on this machine, with every service embedded.

    Args:
        host: The address to listen on; an address other than loopback requires --auth required.
        port: The HTTP port; 0 chooses a free one.
        mqtt_port: The port of the devices' MQTT broker; 0 chooses a free one; default: 1883, or a free one if that is
            taken.
        mqtt_rate: The maximum number of messages a second that a connection may publish, as with IoT Core; 0:
            unlimited.
        mqtt_url: An external broker such as mqtt://127.0.0.1:1883, with its own authentication; default: the embedded
            broker.
        mqtt_token: The external broker's password of the user 'kho', if it requires one.
        data: The folder of all data.
        auth: open: every caller is the tenant 'local'. required: callers need a key, see 'kho keys create'.
        aws_endpoint: A DynamoDB endpoint; default: the embedded store.
        store: private: only this server reaches the embedded store. loopback: every program of this machine does, those
            of other users too, for the AWS command line and for containers on the host's network.
        qdrant_url: A Qdrant server, with its key in KHO_QDRANT_KEY; default: the embedded engine.
        root: A folder whose files ingestions may read, if the address is a loopback one; default: the working folder.
        cors_origins: The origins of web pages that may call, separated by commas, such as https://app.example.com;
            default: none.
        public_url: The address under which clients reach this server, such as https://kho.example.com, for OAuth;
            default: the address that is listened on, if it is a loopback one.
        workers: The number of processes that serve callers and run functions; with 1, this process does it; default:
            the cores that it may use on Linux, else 1.
        grace_seconds: The seconds in which the server ends when it is asked to, by force if need be.
    """
    shutdown = _watch_signals(grace_seconds)
    if auth == "open" and host not in _LOOPBACK:
        exit_with_error(
            f"{host} is not a loopback address: use --auth required, and create keys with 'kho keys create'."
        )
    _require_folders(root)
    count = _worker_count(workers)
    template = load()
    data = data.resolve()
    with ExitStack() as stack:
        try:
            stack.enter_context(lock_folder(data))
        except DataFolderError as error:
            exit_with_error(f"{error}. Choose another folder with --data.")
        listener = _listen(host, port, "--port (KHO_PORT)")
        stack.callback(listener.close)
        mqtt_listener = None if mqtt_url else _listen_for_devices(host, mqtt_port)
        if mqtt_listener:
            stack.callback(mqtt_listener.close)
        else:
            _check_broker(mqtt_url)
        parts = _start_nursery(stack, template, count) if count > 1 else None
        options = {
            "KHO_QDRANT_URL": qdrant_url,
            "KHO_CORS_ORIGINS": cors_origins,
            "KHO_CONSOLE_FOLDER": _bundle_console(data),
        }
        options |= _addresses(public_url or (address_of(listener) if host in _LOOPBACK else ""), listener)
        given = {name: value for name, value in options.items() if value}
        prepare(template, data, auth=auth, own_account=bool(aws_endpoint), options=given)
        try:
            provide_model()
            store_url = (
                _check_endpoint(aws_endpoint) if aws_endpoint else start_engine(stack, data, private=store == "private")
            )
        except (ComponentUnavailable, StoreUnavailable) as error:
            exit_with_error(str(error))
        point_at_store(store_url)
        if parts:
            runtime.open_index = parts.indexes.open
        _require_valid_settings()
        _prepare_tables(store_url, template, data)
        start_checks(data, embedded=not aws_endpoint and DURABLE)
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
            shutdown=shutdown,
            authorizing=authorizing,
            durable=bool(aws_endpoint) or DURABLE,
            workers=parts,
        )
    shutdown.finish()


def _worker_count(workers: int | None) -> int:
    if workers is None:
        return min(cpu_count(), _MAX_WORKERS) if SUPPORTED else 1
    if not 1 <= workers <= _MAX_WORKERS:
        exit_with_error(f"--workers (KHO_WORKERS) takes 1 to {_MAX_WORKERS}, not {workers}.")
    if workers > 1 and not SUPPORTED:
        exit_with_error("Several workers need Linux. Start with --workers 1 (KHO_WORKERS).")
    return workers


def _start_nursery(stack: ExitStack, template: Template, count: int) -> WorkerParts:
    """Start the process that forks the workers, which imports their functions meanwhile."""
    nursery = Nursery(functions_of_workers(template))
    stack.callback(nursery.close)
    return WorkerParts(count, nursery, SharedIndexes())


def _require_valid_settings() -> None:
    from shared.language_model import language_model
    from shared.platform.config import ConfigurationError, config

    try:
        config()
        language_model()
    except ConfigurationError as error:
        exit_with_error(str(error))


def _prepare_tables(store_url: str, template: Template, data: Path) -> None:
    """Create missing tables, and bring all to this program's formats. On a full disk they are served as they are."""
    from shared.migrations.runner import migrate
    from shared.platform.formats import DataTooNew
    from shared.rpc.errors import KhoError

    create_tables(store_url, template.tables)
    try:
        migrate(lambda line: _tell(f"Migrating {line}."))
    except DataTooNew as error:
        exit_with_error(f"{error}. Or choose another folder with --data.")
    except (KhoError, ClientError) as error:
        command = f"kho migrate --data {shlex.quote(str(data))}"
        _tell(f"Warning: the data is not migrated: {error} Run later: {command}")


def _tell(line: str) -> None:
    with contextlib.suppress(OSError):  # the output may be a file on a full disk
        print(line, file=sys.stderr, flush=True)


def _watch_signals(grace_seconds: float) -> Shutdown:
    if not 1 <= grace_seconds <= _MAX_GRACE_SECONDS:
        exit_with_error(f"--grace-seconds (KHO_GRACE_SECONDS) takes 1 to {_MAX_GRACE_SECONDS}, not {grace_seconds:g}.")
    shutdown = Shutdown(grace_seconds)
    shutdown.watch_signals()
    return shutdown


def _bundle_console(data: Path) -> str:
    """Bundle the console for its function, and return the folder.

    Without its packages, the function says how to fetch them.
    """
    folder = data / "console"
    with contextlib.suppress(BundleError):
        bundle(folder, one_machine=True)
    return str(folder)


def _addresses(public_url: str, listener: socket.socket) -> dict[str, str]:
    """Return the variables with the addresses by which clients and boards reach this server."""
    if public_url:
        return {"KHO_PUBLIC_URL": public_url}
    return {"KHO_BOARD_URL": os.environ.get("KHO_BOARD_URL") or network_address_of(listener)}


def _listen(host: str, port: int, option: str) -> socket.socket:
    try:
        return listen(host, port)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            exit_with_error(f"Port {port} is taken. Stop the process that uses it, or choose another with {option}.")
        exit_with_error(f"Cannot listen on {host}, port {port}: {error.strerror}.")
    except OverflowError:
        exit_with_error(f"{port} is not a port: {option} takes 0 to 65535.")


def _listen_for_devices(host: str, port: int | None) -> socket.socket:
    if port is not None:
        return _listen(host, port, "--mqtt-port (KHO_MQTT_PORT)")
    try:
        return listen(host, _MQTT_PORT)
    except OSError:  # the default port is taken, for example by another broker on this machine
        return _listen(host, 0, "--mqtt-port (KHO_MQTT_PORT)")


def _require_folders(roots: Sequence[Path]) -> None:
    for folder in roots:
        if not folder.is_dir():
            exit_with_error(f"The root '{folder}' is not a folder. Choose existing folders with --root (KHO_ROOT).")


def _allow_reading(roots: Sequence[Path], *, pdf_seconds: int = _PDF_SECONDS) -> None:
    """Allow ingestions to read this machine's files under `roots`. All callers are on this machine."""
    from infra.clients.agent.files.reader import FileReader
    from infra.clients.agent.files.roots import Roots

    runtime.file_source = FileReader(Roots(roots), pdf_seconds)


def _check_broker(url: str) -> None:
    host, port = host_and_port(url, ("mqtt", "mqtts"))
    try:
        socket.create_connection((host, port), timeout=_CONNECT_SECONDS).close()
    except OSError as error:
        exit_with_error(
            f"No broker answers at {url} ({error.strerror or 'no answer'}). Correct --mqtt-url, or omit it."
        )


def _check_endpoint(endpoint: str) -> str:
    try:
        if not re.match(r"https?://[^/]", endpoint):
            raise ValueError("no URL of HTTP")
        with connect(endpoint) as client:
            client.list_tables(Limit=1)
    except (ValueError, BotoCoreError, ClientError) as error:
        exit_with_error(
            f"No DynamoDB answers at {endpoint} ({type(error).__name__}). Correct --aws-endpoint, or omit it."
        )
    return endpoint
