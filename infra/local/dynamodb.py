"""The local DynamoDB engine: `dynoxide` on a file in the data folder, or moto on platforms without it."""

from __future__ import annotations

import ctypes
import os
import platform
import secrets
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlsplit

from botocore.exceptions import BotoCoreError, ClientError

from infra.local import components, store_namespace
from infra.local.passed_socket import SCHEME
from infra.local.streams import finished_positions
from infra.prepare import SUPPORTS_STORE
from shared.aws.dynamodb_client import DynamoDBHttpClient
from shared.platform.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    from infra.local.template import TableDefinition

DURABLE: Final = SUPPORTS_STORE
_START_SECONDS: Final = 60
_START_ATTEMPTS: Final = 5
_READ_SECONDS: Final = 30
_RESTART_SECONDS: Final = 0.2
_PR_SET_PDEATHSIG: Final = 1
_RETENTION_SECONDS: Final = 7 * 24 * 3600
# Without it, each write and each poll reads every stream record of every table.
_INDEX: Final = (
    "CREATE INDEX IF NOT EXISTS kho_changes ON _stream_records (table_name, CAST(sequence_number AS INTEGER))"
)
# The last record of each table stays: the engine continues its sequence numbers from it. So does what a reader has
# yet to finish, because the clock may be wrong, or may have been.
_TRIM: Final = (
    "DELETE FROM _stream_records WHERE shard_id = ? AND created_at < ? AND CAST(sequence_number AS INTEGER) <= ?"
    " AND id NOT IN (SELECT MAX(id) FROM _stream_records GROUP BY table_name)"
)
_LAST_NUMBER: Final = 2**63 - 1


class EngineFailed(Exception):
    """The store did not start."""


class Engine:
    """A DynamoDB endpoint on this machine. It ends with this process, even if the process is killed.

    It accepts any signature and origin. Therefore it runs where nothing but the holder of its Unix socket can connect,
    if the machine allows it and `private` asks for it.
    """

    def __init__(self, file: Path, log: Path, *, private: bool = True) -> None:
        self._log = log
        self._closing = threading.Event()
        if not (private and self._start_in_namespace(file)):
            self._start_on_free_port(file)
        if DURABLE:
            index_and_trim(file)
        threading.Thread(target=self._keep_running, name="store", daemon=True).start()

    def close(self) -> None:
        """End the engine. Every acknowledged write is on disk."""
        self._closing.set()
        self._end()

    def _end(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    @property
    def is_private(self) -> bool:
        """True if other users of this machine cannot connect to the engine."""
        return urlsplit(self.url).scheme == SCHEME

    def _start_in_namespace(self, file: Path) -> bool:
        """Start the engine where no other process can connect to it. Return False if this machine forbids that."""
        if not (DURABLE and platform.system() == "Linux"):
            return False
        socket_file = file.parent / "store.sock"
        self.url = f"{SCHEME}:{quote(str(socket_file))}"
        start = [sys.executable, "-I", store_namespace.__file__, str(os.getpid()), str(socket_file)]
        self._command = [*start, *_dynoxide("127.0.0.1", store_namespace.PORT, file)]
        self._process = self._start()
        try:
            self._await_answer()
        except EngineFailed:
            self._end()
            if self._process.returncode != store_namespace.FORBIDDEN:
                raise
            return False
        return True

    def _start_on_free_port(self, file: Path) -> None:
        """Start the engine. Try another port if it ends: another process may have taken the first one meanwhile."""
        for attempts_left in reversed(range(_START_ATTEMPTS)):
            host = _loopback_host()
            port = _free_port()
            self.url = f"http://{host}:{port}"
            self._command = _dynoxide(host, port, file) if DURABLE else _moto(host, port)
            self._process = self._start()
            try:
                self._await_answer()
            except EngineFailed:
                ended = self._process.poll() is not None
                self._end()
                if not (ended and attempts_left):
                    raise
            else:
                return

    def _start(self) -> subprocess.Popen[bytes]:
        # A session of its own, so that the terminal's Ctrl-C does not stop it: requests in progress need it.
        return start_child(self._command, self._log, start_new_session=True)

    def _keep_running(self) -> None:
        """Restart the engine whenever it ends. Every acknowledged write is on disk."""
        while not self._closing.is_set():
            self._process.wait()
            if not self._closing.wait(_RESTART_SECONDS):
                self._process = self._start()

    def _await_answer(self) -> None:
        deadline = time.monotonic() + _START_SECONDS
        with connect(self.url) as client:
            while time.monotonic() < deadline:
                if self._process.poll() is not None:
                    raise EngineFailed(f"the store ended as it started, with code {self._process.returncode}")
                try:
                    client.list_tables(Limit=1)
                except (BotoCoreError, ClientError):
                    time.sleep(0.02)
                else:
                    return
        raise EngineFailed(f"the store did not answer within {_START_SECONDS} s")


@contextmanager
def connect(url: str) -> Iterator[DynamoDBHttpClient]:
    """Yield a client of the engine at `url`."""
    with closing(DynamoDBHttpClient(url, attempts=1, read_seconds=_READ_SECONDS)) as client:
        yield client


def create_tables(url: str, tables: Collection[TableDefinition]) -> bool:
    """Create the template's tables that do not exist yet in the store at `url`, and streams that they lack.

    Return True if a table was created.
    """
    with connect(url) as client:
        page = client.list_tables()
        existing = set(page["TableNames"])
        while "LastEvaluatedTableName" in page:
            page = client.list_tables(ExclusiveStartTableName=page["LastEvaluatedTableName"])
            existing.update(page["TableNames"])
        for table in tables:
            if table.name not in existing:
                client.create_table(TableName=table.name, **table.creation)
            elif "StreamSpecification" in table.creation:
                description = client.describe_table(TableName=table.name)["Table"]
                if not description.get("StreamSpecification", {}).get("StreamEnabled"):
                    stream = table.creation["StreamSpecification"]
                    client.update_table(TableName=table.name, StreamSpecification=stream)
    return any(table.name not in existing for table in tables)


def index_and_trim(file: Path) -> None:
    """Index the stream records in the engine's `file`, and delete those older than a week that were processed."""
    try:
        with closing(sqlite3.connect(file, timeout=5)) as database, database:
            database.execute(_INDEX)
            before, finished = int(time.time()) - _RETENTION_SECONDS, finished_positions(file.parent)
            for (shard,) in database.execute("SELECT DISTINCT shard_id FROM _stream_records").fetchall():
                database.execute(_TRIM, [shard, before, finished.get(shard, _LAST_NUMBER)])
    except sqlite3.Error as error:
        # The engine works without the index, but slower. Another version of it may have another schema.
        logger.warning("store", extra={"failure": str(error)})


def _dynoxide(host: str, port: int, file: Path) -> list[str]:
    return [str(components.engine()), "serve", "--host", host, "--port", str(port), "--db-path", str(file)]


def _moto(host: str, port: int) -> list[str]:
    return [sys.executable, "-I", "-m", "moto.server", "--host", host, "--port", str(port)]


def _loopback_host() -> str:
    """Choose a random loopback address. A web page cannot scan for it, and the engine accepts any signature and origin.

    macOS has only 127.0.0.1.
    """
    if platform.system() == "Darwin":
        return "127.0.0.1"
    return f"127.{1 + secrets.randbelow(254)}.{secrets.randbelow(256)}.{1 + secrets.randbelow(254)}"


def _free_port() -> int:
    """Find a port that is free on every address: the engine refuses one that is in use on any."""
    with socket.socket() as probe:
        probe.bind(("", 0))
        port: int = probe.getsockname()[1]
        return port


def start_child(command: list[str], log: Path, *, start_new_session: bool = False) -> subprocess.Popen[bytes]:
    """Start a process that writes to `log`. On Linux, it ends with the calling thread."""
    with log.open("ab") as output:
        return subprocess.Popen(  # noqa: S603 - no outside input in the command
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=start_new_session,
            preexec_fn=_end_with_parent if platform.system() == "Linux" else None,  # noqa: PLW1509 - one system call
        )


def _end_with_parent() -> None:
    """Make Linux kill this process when the thread that started it ends, even if its process is killed."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
