"""The parts in which one machine differs from AWS. A program sets them once, before its first call."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from types_boto3_dynamodb import DynamoDBClient

    from shared.devices.rpc import DeviceTransport
    from shared.knowledge.folder_sync import FileSource
    from shared.search.embedding.models import Space
    from shared.search.store import VectorStore

    FunctionTransport = Callable[[str, bytes], bytes]
    """Sends a JSON event to the function of a name (`name` or `name:alias`), and returns the JSON of its response.

    It raises TimeoutError if no response came in time, and `FunctionCrashed` if the function made none.
    """


class FunctionClient(Protocol):
    """A client of the service that runs functions."""

    def invoke(self, function: str, payload: bytes) -> bytes:
        """Run a function, as a `FunctionTransport` does."""

    def start(self, function: str, payload: bytes) -> None:
        """Send an event without waiting for its end. Raise `Unavailable` if it was not taken."""


@dataclass(slots=True)
class Runtime:
    """The parts by which this process calls functions, keeps data and reads files."""

    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    """The variables that settings are read from. One machine has those of the template, of the operator and its own."""
    functions: FunctionTransport | None = None
    """Runs functions instead of Lambda."""
    lambda_client: Callable[[], FunctionClient] | None = None
    """Returns this process's client of Lambda, which most functions do not load."""
    dynamodb: DynamoDBClient | None = None
    """By default a client of this process's region, made at the first use."""
    open_index: Callable[[Space, Path], VectorStore] | None = None
    """Opens the search index of a folder. Deployed functions have a Qdrant server instead."""
    device_transport: DeviceTransport | None = None
    """Sends messages to devices by a broker in this process, instead of connections to one."""
    file_source: FileSource | None = None
    """Reads the files of ingestions. Without one, callers send them."""
    is_disk_full: Callable[[], bool] | None = None
    """Tells if this machine's disk is full: then reads go on without the records that they would write."""
    sockets: dict[str, Callable[[str, float], socket.socket]] = field(default_factory=dict)
    """Connections to URLs with schemes of this machine: each takes a path and a time-out in seconds.

    Their servers verify no signature, because only Kho reaches them.
    """


runtime: Final = Runtime()
