"""The real local store for tests: its own engine, with the template's tables."""

from __future__ import annotations

import contextlib
import os
import socket
import tempfile
import threading
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import boto3
from botocore.config import Config

from infra.local import passed_socket
from infra.local.data_folder import read_server_info
from infra.local.dynamodb import Engine, create_tables
from infra.local.environment import point_at_store, prepare, set_variables
from infra.local.functions import Functions
from infra.local.template import load
from shared.aws import dynamodb
from shared.platform.config import config
from shared.platform.runtime import runtime
from tests.helpers.environment import adopt_environment
from tests.helpers.limits import LONG_SECONDS
from tests.helpers.wait import CEILING_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from types_boto3_dynamodb import DynamoDBClient


@contextmanager
def running_store() -> Iterator[str]:
    """Serve the template's tables on loopback, and point this process's settings at them. Functions run in it too."""
    template = load()
    functions = {name: replace(each, timeout=LONG_SECONDS) for name, each in template.functions.items()}
    runtime.functions = Functions(functions)
    with tempfile.TemporaryDirectory(prefix="kho-test-") as folder:
        log = os.environ.get("KHO_LOG_FILE", "")
        prepare(template, Path(folder), auth="open")
        engine = Engine(Path(folder) / "dynamodb.sqlite", Path(folder) / "store.log", private=False)
        try:
            point_at_store(engine.url)
            set_variables({"KHO_LOG_FILE": log, "KHO_FIRMWARE_FOLDER": ""})  # tests choose these
            adopt_environment()
            create_tables(engine.url, template.tables)
            yield engine.url
        finally:
            dynamodb.override_client(None)
            engine.close()


def empty_documents(url: str) -> None:
    """Empty the table of documents in the store at `url`."""
    boto3_client(url).delete_table(TableName=config().documents_table)
    create_tables(url, load().tables)


@contextmanager
def store_of(data: Path) -> Iterator[None]:
    """Use the store of the server that runs on a data folder."""
    running = read_server_info(data)
    assert running
    anyone = boto3.Session("local", "local", region_name="us-east-1")
    dynamodb.override_client(anyone.client("dynamodb", endpoint_url=tcp_url(running["store_url"])))
    try:
        yield
    finally:
        dynamodb.override_client(None)


def boto3_client(url: str) -> DynamoDBClient:
    """Return boto3's client of the store at `url`."""
    settings = Config(retries={"total_max_attempts": 1}, proxies={})
    return boto3.client("dynamodb", endpoint_url=tcp_url(url), config=settings)


@cache
def tcp_url(url: str) -> str:
    """Return an address of the store for boto3, which knows no Unix sockets. This process relays its connections."""
    parts = urlsplit(url)
    if parts.scheme != passed_socket.SCHEME:
        return url
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=_relay_connections, args=(listener, unquote(parts.path)), daemon=True).start()
    return f"http://127.0.0.1:{listener.getsockname()[1]}"


def _relay_connections(listener: socket.socket, store: str) -> None:
    while True:
        client, _ = listener.accept()
        threading.Thread(target=_relay_connection, args=(client, store), daemon=True).start()


def _relay_connection(client: socket.socket, store: str) -> None:
    with client, passed_socket.connect(store, CEILING_SECONDS) as server:
        server.settimeout(None)
        answers = threading.Thread(target=_relay, args=(server, client), daemon=True)
        answers.start()
        _relay(client, server)
        answers.join()


def _relay(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
