"""`kho serve`: the template on one machine, with every service embedded."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shlex
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import uvicorn

from infra.local.data_folder import ServerInfo, write_server_info
from infra.local.functions import Functions
from infra.local.gateway import AccessLog, Gateway, with_cors
from infra.local.http_protocol import BoundedHttpProtocol
from infra.local.iot.broker_transport import BrokerTransport
from infra.local.iot.iot_core import EmbeddedIotCore, configure_functions
from infra.local.iot.rules.dispatcher import RuleDispatcher
from infra.local.iot.simulator.sample_devices import sample_devices
from infra.local.methods import add_methods
from infra.local.schedules import ScheduledInvocations
from infra.local.shutdown import STOP_SECONDS, join_all
from infra.local.sockets import address_of
from infra.local.streams import StreamReader, forget_former_readers
from infra.local.ttl import TtlSweeper
from shared.aws.delivery_attempts import end_attempts
from shared.devices.webhook_delivery import stop_deliveries
from shared.platform.config import config
from shared.platform.runtime import runtime
from shared.search.index import close_index

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from starlette.types import ASGIApp

    from infra.local.iot.iot_core import LocalIotCore
    from infra.local.shutdown import Shutdown
    from infra.local.template import Template


def run(  # noqa: PLR0913 - each is a part of the machine
    template: Template,
    listener: socket.socket,
    devices: AbstractContextManager[LocalIotCore],
    data: Path,
    store_url: str,
    *,
    shutdown: Shutdown,
    authorizing: bool,
    durable: bool,
) -> None:
    """Serve until the shutdown begins. Then finish the requests, and close every service."""
    with ExitStack() as stack:
        template = add_methods(template)
        functions = Functions(template.functions)
        stack.callback(functions.close)
        runtime.functions = functions
        iot_core = stack.enter_context(devices)
        configure_functions(iot_core)
        if isinstance(iot_core, EmbeddedIotCore):
            runtime.device_transport = BrokerTransport(iot_core.broker)
        write_server_info(
            data,
            ServerInfo(
                pid=os.getpid(),
                address=address_of(listener),
                store_url=store_url,
                mqtt_url=iot_core.mqtt_url,
                mqtt_token=iot_core.token,
                data_plane_url=iot_core.data_plane_url,
                board_url=config().board_url or config().public_url,
                model_provider=config().model_provider,
            ),
        )
        rules = RuleDispatcher(template.rules, iot_core.broker, functions)
        stack.callback(rules.close)
        stack.callback(sample_devices().close)
        access_log = AccessLog()
        access_log.start()
        gateway = Gateway(
            template,
            functions,
            authorizing=authorizing,
            access_log=access_log.access,
            # The sign-in page sends its form from the public address, even if a proxy calls another.
            origins=tuple(filter(None, (*config().cors_origins, config().public_url))),
            firmware=Path(config().firmware_folder) if config().firmware_folder else None,
        )
        stack.callback(gateway.close)
        forget_former_readers(data, [trigger.function for trigger in template.streams])
        readers = [StreamReader(trigger, store_url, functions, data) for trigger in template.streams]
        schedules = [ScheduledInvocations(trigger, functions) for trigger in template.schedules]
        sweeper = TtlSweeper(store_url, template.tables)
        background: list[StreamReader | ScheduledInvocations | TtlSweeper] = [*readers, *schedules, sweeper]
        stack.callback(join_all, background, STOP_SECONDS)
        for thread in background:
            thread.start()
            stack.callback(thread.stop)
        # Aborts indexing in progress, which may take minutes; the streams deliver those records again.
        stack.callback(close_index)
        stack.callback(stop_deliveries)
        stack.callback(end_attempts)
        application = with_cors(gateway, config().cors_origins)
        server = _Server(http_settings(application, end_seconds=shutdown.request_seconds))

        def end() -> None:
            server.should_exit = True

        shutdown.end_gracefully(end, gateway.requests)
        with contextlib.suppress(OSError):  # its output may be a file on a full disk
            _print_banner(listener, iot_core.mqtt_url, data, authorizing=authorizing, durable=durable)
        asyncio.run(server.serve(sockets=[listener]))


class _Server(uvicorn.Server):
    """An HTTP server that leaves the process's signals to `Shutdown`."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Serve."""
        yield


def http_settings(
    gateway: ASGIApp, protocol: type[BoundedHttpProtocol] = BoundedHttpProtocol, end_seconds: float | None = None
) -> uvicorn.Config:
    """Return uvicorn's settings for the gateway. At the server's end, requests have `end_seconds` to end."""
    return uvicorn.Config(
        gateway,
        http=protocol,
        ws="none",
        lifespan="off",
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_keep_alive=65,
        timeout_graceful_shutdown=end_seconds,  # type: ignore[arg-type]  # annotated as whole seconds
    )


def _print_banner(listener: socket.socket, mqtt_url: str, data: Path, *, authorizing: bool, durable: bool) -> None:
    address = address_of(listener)
    call = {"jsonrpc": "2.0", "method": "memory-server/memory/get_or_create", "params": {}, "id": 1}
    print(f"Kho listens on {address}")
    print(f"The console is at {address}/console/")
    print(f"Data is kept in {data}" if durable else "Data is NOT kept: this platform has no durable local store.")
    print(f"Devices connect to {mqtt_url}")
    if authorizing:
        print(f"Callers need a key: kho keys create --data {shlex.quote(str(data))} --tenant <name> --role writer")
    key = "-H 'Authorization: Bearer <key>' " if authorizing else ""
    print("Try:")
    print(f"  curl -X POST {address}/jsonrpc {key}-H 'Content-Type: application/json' -d '{json.dumps(call)}'")
    print("Ctrl-C ends it.", flush=True)
