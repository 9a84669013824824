"""The end of `kho serve`: by signals, in its grace period, during any work. Nothing acknowledged is lost."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
import urllib3

from infra.local.iot.simulator.device import DeviceModel
from infra.local.iot.simulator.fleet import Fleet
from infra.local.iot.simulator.quirks import FIRMWARE, Quirk
from tests.e2e.local.busy_server import BUSY, PROGRAM
from tests.helpers.environment import ORIGINAL_ENVIRONMENT
from tests.helpers.folders import write_files
from tests.helpers.kho_server import KhoServer
from tests.helpers.model_server import SLOW, model_server
from tests.helpers.program import KHO, command, start
from tests.helpers.size import FULL_SIZE, sized
from tests.helpers.wait import CEILING_SECONDS, until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.helpers.model_server import ModelServer

GRACE_SECONDS: Final = sized(3, full=28)
NEVER_SECONDS: Final = "3600"
DOCUMENT_BYTES: Final = sized(200_000, full=2 << 20)
SENTENCE: Final = "Ships of many kinds lie in this harbour, and each of them has its own berth. "
ADD: Final = "memory-server/memory/add_message"
GET: Final = "memory-server/memory/get_all_messages"


class Work:
    """Long work of one kind that a server was given."""

    def __init__(self, server: KhoServer, folder: Path, silent: ModelServer, stack: ExitStack) -> None:
        self.server = server
        self.folder = folder
        self._silent = silent
        self._stack = stack
        self._pool = stack.enter_context(ThreadPoolExecutor())

    def ingestion(self) -> Callable[[], bool]:
        """Ingest a folder. Return a check that the job went on after a restart."""
        write_files(self.folder / "root", *(f"{number}.md" for number in range(40)), text=SENTENCE * 60)
        self.server.call("research-agent/manage_collections", action="create", collection_name="ships")
        ingestion = {"collection": "ships", "path": ".", "recursive": True}
        job = self.server.call("research-agent/ingest_documents", **ingestion)["job_id"]
        until(lambda: self._progress(job) > 2)
        before = self._progress(job)
        return lambda: self._progress(job) > before

    def embedding(self) -> Callable[[], bool]:
        """Index a large document. Return a check that it is stored."""
        body = SENTENCE * (DOCUMENT_BYTES // len(SENTENCE))
        document = {"document_id": "large", "parent_id": "root", "content": {"body": body}}
        self.server.call("agent-data/create_document", **document)
        question = {"query": "Which ships lie in the harbour?"}
        until(lambda: self.server.call("agent-data/query_knowledge", **question)["context"])
        return lambda: self.server.call("agent-data/get_document", document_id="large")["content"]["body"] == body

    def device(self) -> Callable[[], bool]:
        """Call a device that never answers."""
        model = DeviceModel(quirks=FIRMWARE | {Quirk.NEVER})
        fleet = self._stack.enter_context(Fleet("127.0.0.1", self.server.mqtt_port, ["mute"], model))
        fleet.start()
        until(lambda: self.server.call("device-server/tools/list", device_id="mute")["tools"])
        call = {"device_id": "mute", "name": "self.test.echo", "arguments": {"text": "x"}, "timeout_ms": 25_000}
        received = fleet["mute"].counters.received
        self._send("/device-server/tools/call", call)
        until(lambda: fleet["mute"].counters.received > received)
        return lambda: True

    def model(self) -> Callable[[], bool]:
        """Ask a language model that never answers."""
        for _ in range(12):
            self.server.call(ADD, conversation_id="long", role="user", content=SENTENCE)
        self._send("/memory-server/memory/get_or_create_summary", {"conversation_id": "long"})
        until(lambda: self._silent.asked)
        return lambda: len(self.server.call(GET, conversation_id="long")["messages"]) == 12

    def function(self) -> Callable[[], bool]:
        """Call a function that uses a core for ever."""
        self._send("/busy", {})
        until((self.server.data / BUSY).exists)
        return lambda: True

    def _progress(self, job: str) -> int:
        return int(self.server.call("research-agent/get_ingestion", job_id=job)["processed"])

    def _send(self, path: str, params: dict[str, Any]) -> None:
        """Send a request that the server's end answers or breaks off."""
        self._pool.submit(self.server.post, path, json.dumps(params).encode())


def is_running(pid: int) -> bool:
    """Return False if the process has ended, even if its parent was not told yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def descendants(pid: int) -> set[int]:
    """Return the ids of a process's child processes, and of theirs."""
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    children = {int(child) for task in tasks for child in task.read_text().split()}
    return children.union(*map(descendants, children))


@contextmanager
def nothing_left(server: KhoServer) -> Iterator[None]:
    """Assert that no child process outlives the server, which ends in the block, and that its ports are free."""
    children = descendants(server.process.pid)
    assert len(children) >= 2, "a store and an index"
    ports = [int(server.address.rpartition(":")[2]), server.mqtt_port]
    yield
    until(lambda: not any(map(is_running, children)))
    for port in ports:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))


@pytest.mark.stress
@pytest.mark.parametrize("kind", ["function", "ingestion", "embedding", "device", "model"][: sized(2, full=5)])
def test_sigterm_ends_long_work_in_the_grace_period(
    tmp_path: Path, kind: str, record_property: Callable[[str, object], None]
) -> None:
    """A server that is asked to end has ended within its grace period, and nothing acknowledged is lost."""
    with ExitStack() as stack:
        model = stack.enter_context(model_server())
        model.behave = SLOW["silence"]
        environment = {"KHO_GRACE_SECONDS": str(GRACE_SECONDS)}
        if kind == "model":
            environment |= model.settings("") | {"AUTO_SUMMARY": "true"}
        (tmp_path / "root").mkdir()
        options = ["--root", str(tmp_path / "root")]
        server = stack.enter_context(
            KhoServer(tmp_path / "data", *options, environment=environment, program=PROGRAM, production_limits=True)
        )
        server.call(ADD, conversation_id="kept", role="user", content="acknowledged")
        server.call("agent-data/query_knowledge", query="x")  # opens the index
        check = getattr(Work(server, tmp_path, model, stack), kind)()
        with nothing_left(server):
            began = time.monotonic()
            server.process.terminate()
            assert server.process.wait(CEILING_SECONDS) in (0, 128 + signal.SIGTERM)
            seconds = time.monotonic() - began
        assert seconds <= GRACE_SECONDS or not FULL_SIZE
        server.start()
        assert server.call(GET, conversation_id="kept")["messages"][0]["content"] == "acknowledged"
        until(check)
    record_property("load", f"SIGTERM during {kind}, {GRACE_SECONDS} s of grace")
    record_property("outcome", f"ended after {seconds:.1f} s")


@pytest.fixture
def silent() -> Iterator[ModelServer]:
    """Yield a language model that never answers."""
    with model_server() as running:
        running.behave = SLOW["silence"]
        yield running


@contextmanager
def asking(folder: Path, silent: ModelServer, grace: str) -> Iterator[tuple[KhoServer, Future[Any]]]:
    """Start a server that has a request under way, and yield its answer to come."""
    settings = silent.settings("") | {"KHO_GRACE_SECONDS": grace}
    with KhoServer(folder / "data", environment=settings) as server, ThreadPoolExecutor() as pool:
        server.call("agent-data/create_document", document_id="a", parent_id="root", content={"body": SENTENCE})
        path, question = "/agent-data/query_knowledge", {"query": "What lies in this harbour?"}
        answer = pool.submit(server.post, path, json.dumps(question).encode())
        until(lambda: silent.asked)
        yield server, answer


def test_second_interrupt_ends_at_once(tmp_path: Path, silent: ModelServer) -> None:
    with asking(tmp_path, silent, NEVER_SECONDS) as (server, _), nothing_left(server):
        server.process.send_signal(signal.SIGINT)
        until(lambda: "Waiting for POST /agent-data/query_knowledge. Ctrl-C ends at once." in server.printed())
        server.process.terminate()  # a repeated SIGTERM changes nothing
        server.process.send_signal(signal.SIGHUP)
        assert server.process.poll() is None
        assert server.interrupt() == 128 + signal.SIGINT
        assert server.printed().splitlines()[-1] == "Ended at once."


def test_request_under_way_is_answered_before_the_end(tmp_path: Path, silent: ModelServer) -> None:
    with asking(tmp_path, silent, NEVER_SECONDS) as (server, answer), nothing_left(server):
        server.process.terminate()
        until(lambda: "Waiting for POST" in server.printed())
        until(lambda: not accepts_connections(server))
        silent.ending.set()
        assert answer.result(CEILING_SECONDS).status == 200
        assert server.process.wait(CEILING_SECONDS) == 0
        assert server.printed().splitlines()[-1] == "Ended."


def test_end_is_forced_if_a_part_does_not_end(tmp_path: Path) -> None:
    environment = {"KHO_GRACE_SECONDS": "2"}
    with KhoServer(tmp_path / "data", environment=environment) as server, nothing_left(server):
        server.call("agent-data/create_document", document_id="a", parent_id="root", content={"body": SENTENCE})
        server.call("agent-data/query_knowledge", query="x")
        index = next(pid for pid in descendants(server.process.pid) if b"engine_process" in command_line(pid))
        os.kill(index, signal.SIGSTOP)
        server.process.terminate()
        assert server.process.wait(CEILING_SECONDS) == 128 + signal.SIGTERM
        assert "Ended by force after 2 s" in server.printed()
        until(lambda: not is_running(index))
        server.start()
        assert server.call("agent-data/query_knowledge", query="What lies in this harbour?")["context"]


def test_sigterm_during_the_start_ends_at_once(tmp_path: Path) -> None:
    """The store that the server waits for takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as mute:
        endpoint = f"http://127.0.0.1:{mute.getsockname()[1]}"
        options = ["--data", str(tmp_path / "data"), "--port", "0", "--mqtt-port", "0", "--aws-endpoint", endpoint]
        for number in (signal.SIGTERM, signal.SIGINT):
            starting = start(KHO, "serve", *options, env=ORIGINAL_ENVIRONMENT, stdout=subprocess.DEVNULL)
            connection, _ = mute.accept()
            with connection:
                starting.send_signal(number)
                assert starting.wait(CEILING_SECONDS) == 128 + number
    with KhoServer(tmp_path / "data") as server:
        assert server.call("agent-data/query_knowledge", query="x")["context"] == []


def test_open_connections_do_not_delay_the_end(tmp_path: Path) -> None:
    """One was used and is kept, one has sent half of its headers."""
    environment = {"KHO_GRACE_SECONDS": NEVER_SECONDS}
    with KhoServer(tmp_path / "data", environment=environment) as server, ExitStack() as stack:
        host, port = server.address.removeprefix("http://").split(":")
        idle, half = (stack.enter_context(socket.create_connection((host, int(port)))) for _ in range(2))
        idle.sendall(b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
        assert idle.recv(1000).startswith(b"HTTP/1.1 200")
        half.sendall(b"GET /health HTTP/1.1\r\nhost:")
        server.process.terminate()
        assert server.process.wait(CEILING_SECONDS) == 0


@pytest.mark.parametrize(("command_of_hangup", "survives"), [("env --default-signal=HUP", False), ("nohup", True)])
def test_hangup_ends_the_server_unless_it_ignores_it(command_of_hangup: str, survives: bool, tmp_path: Path) -> None:
    """A terminal that is closed ends the server, except under nohup."""
    options = ["serve", "--data", str(tmp_path / "data"), "--port", "0", "--mqtt-port", "0"]
    started = [*command_of_hangup.split(), *command(KHO), *options]
    with subprocess.Popen(started, stdout=subprocess.PIPE, env=ORIGINAL_ENVIRONMENT, text=True) as server:
        assert server.stdout
        address = next(line for line in server.stdout if "listens on" in line).split()[-1]
        assert any("Ctrl-C ends it." in line for line in server.stdout)
        server.send_signal(signal.SIGHUP)
        if survives:
            health = urllib3.request("GET", f"{address}/health", retries=False, timeout=CEILING_SECONDS)
            assert health.status == 200
            server.terminate()
        assert server.wait(CEILING_SECONDS) == 0


def test_terminal_that_nobody_reads_does_not_delay_the_end(tmp_path: Path) -> None:
    options = ["--data", str(tmp_path / "data"), "--port", "0", "--mqtt-port", "0"]
    environment = ORIGINAL_ENVIRONMENT | {"KHO_GRACE_SECONDS": NEVER_SECONDS}
    reader, writer = os.pipe()
    with (
        start(KHO, "serve", *options, env=environment, stdout=writer, stderr=writer) as process,
        os.fdopen(reader) as out,
    ):
        os.close(writer)
        address = next(line for line in out if "listens on" in line).split()[-1]
        http = urllib3.PoolManager(timeout=CEILING_SECONDS, retries=False)
        assert {http.request("GET", f"{address}/{'x' * 4000}").status for _ in range(60)} == {404}
        process.terminate()
        assert process.wait(CEILING_SECONDS) == 0


def accepts_connections(server: KhoServer) -> bool:
    """Return True if the server takes new connections."""
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", int(server.address.rpartition(":")[2]))) == 0


def command_line(pid: int) -> bytes:
    """Return a process's command."""
    return Path(f"/proc/{pid}/cmdline").read_bytes()
