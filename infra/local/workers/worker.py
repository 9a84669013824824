"""A worker: a process that serves the HTTP connections that the owner hands over, and runs functions."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from infra.local.environment import adopt
from infra.local.http_server import HttpServer, http_settings, make_gateway
from infra.local.methods import add_methods
from infra.local.workers import descriptors
from infra.local.workers.connection_record import ConnectionRecords
from infra.local.workers.index_connections import IndexConnections
from infra.local.workers.owned_functions import OwnerClient, WorkerFunctions
from infra.local.workers.tracked_connection import TrackedConnection, TrackedProtocol
from shared.aws.delivery_attempts import end_attempts
from shared.devices.webhook_delivery import stop_deliveries
from shared.platform.runtime import runtime

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from infra.local.template import Template
    from shared.knowledge.folder_sync import FileSource

SLOT: Final = struct.Struct("<I")
"""A message on a worker's control socket: a connection that is handed over or closed, or one of these."""
_WORKER: Final = "KHO_WORKER"
"""The variable by which the log knows that another process rotates its file."""
READY: Final = 0xFFFF_FFFF
END: Final = 0xFFFF_FFFE


@dataclass(frozen=True, slots=True)
class Settings:
    """The facts that a worker has from its owner."""

    template: Template
    variables: Mapping[str, str]
    library_variables: Mapping[str, str]
    file_source: FileSource | None
    authorizing: bool
    request_seconds: float
    """The seconds that requests have to end."""


def run(settings: Settings, inherited: Sequence[int]) -> None:
    """Serve until the owner asks for the end. It ends at once with its owner."""
    control, calls = (socket.socket(fileno=each) for each in inherited[:2])
    adopt({**settings.variables, _WORKER: "true"}, settings.library_variables, settings.file_source)
    owner = OwnerClient(calls)
    runtime.open_index = partial(IndexConnections, owner)
    template = add_methods(settings.template)
    functions = WorkerFunctions(template.functions, owner)
    runtime.functions = functions
    gateway, application = make_gateway(template, functions, authorizing=settings.authorizing)
    server = HttpServer(http_settings(application, end_seconds=settings.request_seconds))
    asyncio.run(_Worker(server, control, ConnectionRecords(inherited[2])).serve())
    stop_deliveries()
    end_attempts()
    gateway.close()
    functions.close()
    os._exit(0)


class _Worker:
    """The connections of this process."""

    def __init__(self, server: HttpServer, control: socket.socket, records: ConnectionRecords) -> None:
        self._server = server
        self._control = control
        self._records = records
        self._accepting: set[asyncio.Task[Any]] = set()

    async def serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._server.config.load()
        self._loop.add_reader(self._control, self._receive)
        self._tell(READY)
        await self._server.serve(sockets=[])
        self._loop.remove_reader(self._control)

    def _receive(self) -> None:
        """Take the owner's messages."""
        while True:
            try:
                message, descriptor = descriptors.receive(self._control, SLOT.size, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return
            except OSError:
                os._exit(0)
            if not message:
                os._exit(0)  # the owner has ended
            (slot,) = SLOT.unpack(message)
            if descriptor is None:
                self._server.should_exit = True
            else:
                accepting = self._loop.create_task(self._accept(slot, socket.socket(fileno=descriptor)))
                self._accepting.add(accepting)
                accepting.add_done_callback(self._accepting.discard)

    async def _accept(self, slot: int, accepted: socket.socket) -> None:
        accepted.setblocking(False)
        connection = TrackedConnection(self._records.open(slot))
        protocol = self._server.protocol({"connection": connection})
        tracked = TrackedProtocol(protocol, connection, partial(self._tell, slot))
        await self._loop.connect_accepted_socket(lambda: tracked, accepted)

    def _tell(self, slot: int) -> None:
        try:
            self._control.sendall(SLOT.pack(slot))
        except OSError:
            os._exit(0)
