"""`kho serve`: the template on one machine, with every service embedded."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shlex
from contextlib import ExitStack
from typing import TYPE_CHECKING

from infra.local.data_folder import ServerInfo, write_server_info
from infra.local.functions import Functions
from infra.local.http_server import HttpServer, http_settings, make_gateway
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
from infra.local.workers.pool import WorkerPool
from infra.local.workers.worker import Settings
from shared.aws.delivery_attempts import end_attempts
from shared.devices.webhook_delivery import stop_deliveries
from shared.platform.config import config
from shared.platform.runtime import runtime
from shared.search.index import close_index
from shared.search.message_index import close_message_index

if TYPE_CHECKING:
    import socket
    from contextlib import AbstractContextManager
    from pathlib import Path

    from infra.local.iot.iot_core import LocalIotCore
    from infra.local.shutdown import Shutdown
    from infra.local.template import Template
    from infra.local.workers.pool import WorkerParts


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
    workers: WorkerParts | None,
) -> None:
    """Serve until the shutdown begins. Then finish the requests, and close every service."""
    with ExitStack() as stack:
        deployed = template
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
        stack.callback(close_message_index)
        stack.callback(stop_deliveries)
        stack.callback(end_attempts)

        def announce() -> None:
            with contextlib.suppress(OSError):  # its output may be a file on a full disk
                _print_banner(listener, iot_core.mqtt_url, data, authorizing=authorizing, durable=durable)

        if workers:
            stack.callback(workers.indexes.close)
            settings = Settings(
                deployed,
                dict(runtime.environment),
                dict(os.environ),
                runtime.file_source,
                authorizing=authorizing,
                request_seconds=shutdown.request_seconds,
            )
            pool = WorkerPool(workers, settings, listener, functions)
            shutdown.end_gracefully(pool.end, pool.requests)
            pool.wait_until_ready()
            announce()
            pool.serve()
        else:
            gateway, application = make_gateway(template, functions, authorizing=authorizing)
            stack.callback(gateway.close)
            server = HttpServer(http_settings(application, end_seconds=shutdown.request_seconds))

            def end() -> None:
                server.should_exit = True

            shutdown.end_gracefully(end, gateway.requests)
            announce()
            asyncio.run(server.serve(sockets=[listener]))


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
