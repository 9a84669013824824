"""`kho serve` with several workers: each call gets a right answer, whichever process ends, and whenever."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
import urllib3

from infra.local.iot.simulator.fleet import Fleet
from tests.e2e.local.test_shutdown import accepts_connections, command_line, descendants, is_running, nothing_left
from tests.helpers.kho_server import KhoServer
from tests.helpers.model_server import SLOW, ModelServer, model_server
from tests.helpers.size import sized
from tests.helpers.wait import CEILING_SECONDS, until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future

ADD: Final = "memory-server/memory/add_message"
GET: Final = "memory-server/memory/get_all_messages"
JSON: Final = {"content-type": "application/json"}
WRITERS: Final = sized(4, full=16)
KILLS: Final = sized(3, full=60)
QUESTION: Final = b'{"query": "What lies in this harbour?"}'


@pytest.fixture(scope="module")
def silent() -> Iterator[ModelServer]:
    """Yield a language model that never answers."""
    with model_server() as running:
        running.behave = SLOW["silence"]
        yield running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, silent: ModelServer) -> Iterator[KhoServer]:
    """Yield a server with two workers, with a document about which the model is asked."""
    data = tmp_path_factory.mktemp("workers") / "data"
    with KhoServer(data, "--workers", "2", environment=silent.settings("")) as running:
        store_document(running)
        yield running


@pytest.mark.stress
def test_killed_workers_lose_and_double_nothing(
    server: KhoServer, record_property: Callable[[str, object], None]
) -> None:
    """While workers are killed under load, no acknowledged write is lost or doubled, and each refusal is right."""
    stopping = threading.Event()
    for number in range(WRITERS):
        server.call("memory-server/memory/get_or_create", conversation_id=f"chat_{number}")
    with ThreadPoolExecutor(WRITERS) as pool:
        writers = [pool.submit(write, server, f"chat_{number}", stopping) for number in range(WRITERS)]
        for number in range(KILLS):
            kill(server, server.worker_pids[number % 2])
            time.sleep(sized(0, full=1))
        stopping.set()
        answers = [answer for writer in writers for answer in writer.result(CEILING_SECONDS)]
    stored = Counter(
        message["content"]
        for number in range(WRITERS)
        for message in server.call(GET, conversation_id=f"chat_{number}")["messages"]
    )
    assert {status for _, status in answers} <= {200, 503, 504}
    acknowledged = [text for text, status in answers if status == 200]
    assert acknowledged
    assert [text for text in acknowledged if stored[text] != 1] == []
    assert [text for text, status in answers if status == 503 and stored[text]] == []
    assert [text for text, count in stored.items() if count > 1] == []
    refused = Counter(status for _, status in answers if status != 200)
    record_property("load", f"{KILLS} workers killed under {WRITERS} writers")
    record_property(
        "outcome",
        f"{len(acknowledged):,} acknowledged, 0 lost, 0 doubled; {refused[504]} times 504, {refused[503]} times 503",
    )


def write(server: KhoServer, conversation: str, stopping: threading.Event) -> list[tuple[str, int]]:
    """Add messages on one connection until told to stop. Return the status of each."""
    answers: list[tuple[str, int]] = []
    with closing(connection(server)) as http:
        while not stopping.is_set():
            text = f"{conversation} {len(answers)}"
            body = json.dumps({"conversation_id": conversation, "role": "user", "content": text})
            status, headers, _ = exchange(http, f"/{ADD}", body.encode())
            assert (status == 503) == ("retry-after" in headers)
            answers.append((text, status))
    return answers


def connection(server: KhoServer) -> HTTPConnection:
    """Return a connection, which opens again by itself."""
    host, port = server.address.removeprefix("http://").split(":")
    return HTTPConnection(host, int(port), CEILING_SECONDS)


def exchange(http: HTTPConnection, path: str, body: bytes) -> tuple[int, dict[str, str], Any]:
    """Send a request. Return the status, headers and body of its response."""
    http.request("POST", path, body, JSON)
    response = http.getresponse()
    answer = json.loads(response.read())
    return response.status, {name.lower(): value for name, value in response.getheaders()}, answer


def test_call_of_a_killed_worker_may_have_happened(server: KhoServer, silent: ModelServer) -> None:
    asked = len(silent.asked)
    with ThreadPoolExecutor() as pool:
        answer = pool.submit(server.post, "/agent-data/query_knowledge", QUESTION)
        until(lambda: len(silent.asked) > asked)
        kill(server, *server.worker_pids)
        response = answer.result(CEILING_SECONDS)
    assert response.status == 504
    assert response.json()["error"]["code"] == "OUT_OF_TIME"
    assert "may or may not have taken effect" in response.json()["error"]["guidance"]
    assert server.call("memory-server/memory/get_or_create", conversation_id="after")


def test_request_that_a_killed_worker_has_read_in_part_has_not_begun(server: KhoServer) -> None:
    with socket.create_connection(("127.0.0.1", urllib3.util.parse_url(server.address).port or 0)) as client:
        client.settimeout(CEILING_SECONDS)
        client.sendall(b"POST /jsonrpc HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{")
        until(lambda: is_read(client))
        kill(server, *server.worker_pids)
        response = b"".join(iter(lambda: client.recv(4096), b""))
    head, _, body = response.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 503 ")
    assert b"retry-after: 1" in head
    assert b"nothing was done" in body


def test_kept_connection_outlives_its_worker(server: KhoServer) -> None:
    with closing(connection(server)) as http:
        assert exchange(http, f"/{ADD}", b'{"conversation_id": "kept", "role": "user", "content": "1"}')[0] == 200
        opened = http.sock
        kill(server, *server.worker_pids)
        assert exchange(http, f"/{ADD}", b'{"conversation_id": "kept", "role": "user", "content": "2"}')[0] == 200
        assert http.sock is opened
    contents = [each["content"] for each in server.call(GET, conversation_id="kept")["messages"]]
    assert contents == ["1", "2"]


def test_parent_of_the_workers_is_replaced(server: KhoServer) -> None:
    before = server.nursery_pid
    os.kill(before, signal.SIGKILL)
    until(lambda: not is_running(before))
    assert server.call("memory-server/memory/get_or_create", conversation_id="replaced")
    assert server.nursery_pid != before


def test_workers_share_model_index_and_broker(server: KhoServer) -> None:
    """Each worker searches the index, after its process has ended too. Devices answer through any of them."""
    experience = {"title": "Oaks wither", "problem_description": "Oaks need more water.", "solution": "Water the oaks."}
    server.call("recall-kit/submit_experience", **experience)
    with ExitStack() as stack:
        # Connections are handed to the worker that has the fewest.
        connections = [stack.enter_context(closing(connection(server))) for _ in range(4)]
        for http in connections:
            assert titles(http) == ["Oaks wither"]
        index = next(pid for pid in descendants(server.process.pid) if b"engine_process" in command_line(pid))
        os.kill(index, signal.SIGKILL)
        until(lambda: not is_running(index))
        until(lambda: all(titles(http) == ["Oaks wither"] for http in connections))
        fleet = stack.enter_context(Fleet("127.0.0.1", server.mqtt_port, ["lamp"]))
        fleet.start()
        until(lambda: fleet.connected)
        for http in connections:
            answer = exchange(http, "/device-server/tools/list", b'{"device_id": "lamp"}')[2]
            assert answer["tools"]


def test_large_requests_and_answers_are_whole(server: KhoServer) -> None:
    """A request larger than its note, and an answer larger than what is held back, are whole."""
    text = "ä" * 40_000
    server.call(ADD, conversation_id="large", role="user", content=text)
    assert server.call(GET, conversation_id="large")["messages"][0]["content"] == text


def test_request_under_way_is_answered_before_the_end(tmp_path: Path, silent: ModelServer) -> None:
    """SIGTERM ends the workers when their requests have ended."""
    with ask(tmp_path, silent) as (server, answer), nothing_left(server):
        server.process.terminate()
        until(lambda: "Waiting for POST /agent-data/query_knowledge. Ctrl-C ends at once." in server.printed())
        until(lambda: not accepts_connections(server))
        silent.ending.set()
        assert answer.result(CEILING_SECONDS).status == 200
        assert server.process.wait(CEILING_SECONDS) == 0
        assert server.printed().splitlines()[-1] == "Ended."
    silent.ending.clear()


def test_second_interrupt_ends_workers_at_once(tmp_path: Path, silent: ModelServer) -> None:
    with ask(tmp_path, silent) as (server, _), nothing_left(server):
        server.process.send_signal(signal.SIGINT)
        until(lambda: "Waiting for POST" in server.printed())
        assert server.interrupt() == 128 + signal.SIGINT


def test_workers_end_with_a_killed_server(tmp_path: Path, silent: ModelServer) -> None:
    with ask(tmp_path, silent) as (server, _), nothing_left(server):
        server.kill()


@contextmanager
def ask(folder: Path, silent: ModelServer) -> Iterator[tuple[KhoServer, Future[Any]]]:
    """Start a server whose workers have a request under way, and yield its answer to come."""
    settings = silent.settings("") | {"KHO_GRACE_SECONDS": "3600"}
    with KhoServer(folder / "data", "--workers", "2", environment=settings) as server, ThreadPoolExecutor() as pool:
        store_document(server)
        asked = len(silent.asked)
        answer = pool.submit(server.post, "/agent-data/query_knowledge", QUESTION)
        until(lambda: len(silent.asked) > asked)
        yield server, answer


def store_document(server: KhoServer) -> None:
    """Store a document about which the model is asked."""
    content = {"body": "Ships of many kinds lie in this harbour."}
    server.call("agent-data/create_document", document_id="ships", parent_id="root", content=content)


def titles(http: HTTPConnection) -> list[str]:
    """Return the experiences that the connection's worker finds."""
    answer = exchange(http, "/recall-kit/query_experiences", b'{"keywords": "oaks wither"}')[2]
    return [each["title"] for each in answer["data"]["experiences"]] if answer["success"] else []


def kill(server: KhoServer, *pids: int) -> None:
    """Kill workers, and wait until others are in their places."""
    others = {*server.worker_pids} - {*pids}
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    until(lambda: len({*server.worker_pids} - {*pids} - others) == len(pids))


def is_read(client: socket.socket) -> bool:
    """Return True if the server has taken all bytes that the client has sent."""
    ports = [f":{name[1]:04X}" for name in (client.getpeername(), client.getsockname())]
    for line in Path("/proc/net/tcp").read_text().splitlines():
        _, local, remote, _, queues, *_ = line.split()
        if local.endswith(ports[0]) and remote.endswith(ports[1]):
            return queues.endswith(":00000000")
    return False
