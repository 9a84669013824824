"""`kho serve` under many callers, next to FastAPI, uvicorn and boto3 with the same reads and writes."""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import urllib3

from infra.local.dynamodb import Engine, create_tables
from infra.local.iot.simulator.quirks import Quirk
from infra.local.sockets import address_of, listen
from infra.local.template import load
from tests.helpers.kho_server import KhoServer
from tests.helpers.wait import CEILING_SECONDS, until
from tests.suites.bench.processes import command_of, memory_bytes, processor_seconds, tree
from tests.suites.bench.size import SMOKE, sized
from tests.suites.bench.tables import BenchTable, ms
from tests.suites.bench.wrk import Load

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tests.suites.bench.wrk import LoadRun

CONNECTIONS: Final = sized((2,), full=(1, 16, 64, 256))
SECONDS: Final = sized(1, full=3)
ROUNDS: Final = sized(1, full=7)
MIXED_SECONDS: Final = sized(1, full=60)
IDLE_SECONDS: Final = sized(0.1, full=10)
CONVERSATIONS: Final = sized(2, full=100)
DOCUMENTS: Final = sized(2, full=200)
EXPERIENCES: Final = sized(2, full=100)
DEVICES: Final = sized(2, full=50)
WORKERS: Final = sorted({1, os.cpu_count() or 1})
OTHER: Final = "KHO_BENCH_OTHER"
"""The program `kho` of another revision's checkout, to measure next to this one."""
KHO: Final = Path(sys.executable).with_name("kho")
MEMORY: Final = "/memory-server/memory/"
TEXT: Final = "Răng của tôi đau khi uống nước lạnh. " * 5
PLANTS: Final = ("Ferns", "Tomatoes", "Apple trees", "Roses", "Cucumbers", "Basil", "Orchids", "Oaks", "Mint", "Lilies")
NO_INDEX: Final = {"KHO_MESSAGE_INDEX": "false"}
"""The peer embeds no message."""
COMPARED: Final = ("add_message", "get_context")
PARTS: Final = ("engine", "index", "server")
ACCOUNT: Final = {"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local", "AWS_DEFAULT_REGION": "us-east-1"}
JSON: Final = {"content-type": "application/json"}


@dataclass(frozen=True, slots=True)
class Call:
    """One kind of call: its address, and the bodies that are sent in turn."""

    path: str
    bodies: list[Any]
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Server:
    """A program `kho`, its number of workers unless it is its own, and its environment."""

    program: Path
    workers: int = 0
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Contender:
    """A server with its own engine, and the processes from which all of its parts descend."""

    name: str
    address: str
    pids: list[int]
    mqtt_url: str = ""

    def parts(self) -> dict[str, list[int]]:
        """Return the running processes of each part."""
        parts: dict[str, list[int]] = {}
        for pid in (each for root in self.pids for each in tree(root)):
            command = command_of(pid)
            is_index = "search_engine.engine_process" in command
            part = "engine" if "dynoxide" in command else "index" if is_index else "server"
            parts.setdefault(part, []).append(pid)
        return parts

    def processor_seconds(self) -> Counter[str]:
        """Return the processor time that each part has used so far."""
        return Counter({part: processor_seconds(pids) for part, pids in self.parts().items()})


@dataclass(slots=True)
class Cell:
    """The runs of one contender, one kind of call and one number of connections."""

    runs: list[LoadRun] = field(default_factory=list)
    spent: Counter[str] = field(default_factory=Counter)

    def add(self, run: LoadRun, spent: Counter[str]) -> None:
        """Add a run, and the processor time that each part has used for it."""
        self.runs.append(run)
        self.spent += spent + Counter({"generator": run.processor_seconds})

    @property
    def rate(self) -> float:
        """The median of the runs' calls per second."""
        return statistics.median(run.calls / run.seconds for run in self.runs)

    def row(self) -> list[str]:
        """Return rate, latency, errors, and processor time a call by part."""
        calls = sum(run.calls for run in self.runs)
        p50, p99 = (statistics.median(getattr(run, name) for run in self.runs) for name in ("p50", "p99"))
        spent = [ms(self.spent[part] / calls) for part in ("generator", *PARTS)]
        return [f"{self.rate:,.0f}", ms(p50), ms(p99), str(sum(run.errors for run in self.runs)), *spent]


COLUMNS: Final = ["calls/s", "p50", "p99", "errors", "generator", *PARTS]


def tables() -> list[BenchTable]:
    """Measure the peers next to Kho, Kho's other calls, a mixed load, and memory."""
    calls = _calls()
    os.environ |= ACCOUNT
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kho-bench-")))
        ours = [stack.enter_context(_kho(folder / name, name, server)) for name, server in _servers().items()]
        memory = [[f"{each.name}, started", *_resources(each)] for each in ours]
        for contender in ours:
            stack.enter_context(_fleet(contender))
            _store_data(contender)
        peers = [stack.enter_context(_fastapi(folder / f"peer{count}", count)) for count in WORKERS]
        contenders = [*peers, *ours]
        for each in contenders:
            for kind in calls if each in ours else COMPARED:
                _verify(each, calls[kind])
        measured = [
            _compared("Next to the peer", contenders, COMPARED, calls, folder),
            _compared("Other calls", ours, [kind for kind in calls if kind not in COMPARED], calls, folder),
            _mixed(ours, calls, folder),
        ]
        memory += [[f"{each.name}, after the load", *_resources(each)] for each in contenders]
    notes = ["Memory of each part, with a share of the pages that processes have in common."]
    return [
        *measured,
        BenchTable("Memory, and processor time without a call", ["", *PARTS, "of a core"], memory, notes),
    ]


def _servers() -> dict[str, Server]:
    """Return the servers of Kho to measure."""
    servers = {_named("Kho", count): Server(KHO, count, NO_INDEX) for count in WORKERS}
    if not SMOKE:
        servers[f"{_named('Kho', WORKERS[-1])}, messages indexed"] = Server(KHO, WORKERS[-1])
    other = os.environ.get(OTHER)
    return servers | ({"Kho, other revision": Server(Path(other))} if other else {})


def _named(server: str, workers: int) -> str:
    return f"{server}, {workers} worker{'s' if workers > 1 else ''}"


def _calls() -> dict[str, Call]:
    conversations = [{"conversation_id": f"chat_{number}"} for number in range(CONVERSATIONS)]
    message = {"role": "user", "content": TEXT}
    questions = [f"How much water do {plant.lower()} need in summer?" for plant in PLANTS]
    mcp = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25"}
    devices = [{"device_id": f"sim-{number + 1}", "name": "self.test.echo"} for number in range(DEVICES)]
    return {
        "add_message": Call(f"{MEMORY}add_message", [each | message for each in conversations]),
        "get_context": Call(f"{MEMORY}get_context", conversations),
        "query_knowledge": Call("/agent-data/query_knowledge", [{"query": each} for each in questions]),
        "query_experiences": Call("/recall-kit/query_experiences", [{"keywords": each} for each in questions]),
        "/mcp tools/call": Call("/mcp", [_tool_call("memory_get_context", each) for each in conversations], mcp),
        "device-server tools/call": Call(
            "/device-server/tools/call", [each | {"arguments": {"text": "bench"}} for each in devices]
        ),
    }


MIX: Final = {
    "add_message": 16,
    "get_context": 16,
    "query_knowledge": 8,
    "query_experiences": 8,
    "/mcp tools/call": 8,
    "device-server tools/call": 8,
}
"""The clients of each kind in the mixed load."""


def _tool_call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}


@contextmanager
def _kho(data: Path, name: str, server: Server) -> Iterator[Contender]:
    options = ["--workers", str(server.workers)] if server.workers else []
    with KhoServer(
        data,
        *options,
        program=str(server.program),
        environment=server.environment,
        production_limits=True,
        measured=True,
    ) as running:
        yield Contender(name, running.address, [running.process.pid], f"mqtt://127.0.0.1:{running.mqtt_port}")


@contextmanager
def _fastapi(folder: Path, workers: int) -> Iterator[Contender]:
    """Run the peer on an engine of its own."""
    folder.mkdir()
    template = load()
    (table,) = (each for each in template.tables if each.name == template.environment["KHO_MEMORY_TABLE"])
    engine = Engine(folder / "dynamodb.sqlite", folder / "store.log", private=False)
    try:
        create_tables(engine.url, [table])
        store = {"AWS_ENDPOINT_URL_DYNAMODB": engine.url, "KHO_MEMORY_TABLE": table.name}
        with listen("127.0.0.1", 0) as listener, ExitStack() as stack:
            command = [sys.executable, "-m", "tests.suites.bench.load_peer", str(listener.fileno())]
            pids = [pid for pid in tree(os.getpid()) if str(folder) in command_of(pid)]
            for _ in range(workers):
                worker = subprocess.Popen(command, env=os.environ | store, pass_fds=[listener.fileno()])
                stack.enter_context(worker)
                stack.callback(worker.terminate)
                pids.append(worker.pid)
            address = address_of(listener)
            until(lambda: _answers(f"{address}/openapi.json"))
            yield Contender(_named("FastAPI", workers), address, pids)
    finally:
        engine.close()


def _answers(address: str) -> bool:
    try:
        return urllib3.request("GET", address, retries=False, timeout=CEILING_SECONDS).status == 200
    except urllib3.exceptions.HTTPError:
        return False


@contextmanager
def _fleet(contender: Contender) -> Iterator[None]:
    """Run devices that answer each call with its text, until the contender has seen all of them."""
    command = [str(KHO), "devices", "simulate", "-n", str(DEVICES), "--quirk", Quirk.SUBSCRIBES.value]
    command += ["--mqtt-url", contender.mqtt_url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as fleet:
        try:
            assert fleet.stdout
            assert f"{DEVICES} of {DEVICES}" in fleet.stdout.readline()
            yield
        finally:
            fleet.kill()


def _store_data(contender: Contender) -> None:
    """Store what the queries find, and wait until they find it."""
    for number in range(DOCUMENTS):
        plant, place = PLANTS[number % len(PLANTS)], f"bed {number}"
        text = f"{plant} in {place} need {number + 1} litres of water a day in summer, and half of it in autumn."
        content = {"mime_type": "text/plain", "body": text}
        document = {"document_id": f"plants-{number}", "parent_id": "root", "content": content}
        _post(contender, "/agent-data/create_document", document | {"metadata": {"title": f"{plant} in {place}"}})
    for number in range(EXPERIENCES):
        plant = PLANTS[number % len(PLANTS)]
        experience = {
            "title": f"{plant} wither in week {number}",
            "problem_description": f"{plant} need more water in summer than they get.",
            "solution": f"Water {plant.lower()} {number + 1} times a week, early in the morning.",
        }
        _post(contender, "/recall-kit/submit_experience", experience)
    query = _calls()["query_knowledge"]
    until(lambda: all(_post(contender, query.path, each)["context"] for each in query.bodies[:DOCUMENTS]))


def _post(contender: Contender, path: str, body: Any, headers: Mapping[str, str] = JSON) -> Any:
    response = urllib3.request("POST", contender.address + path, json=body, headers=headers, timeout=CEILING_SECONDS)
    assert response.status < 300, (contender.name, path, response.status, response.data)
    return response.json()


def _verify(contender: Contender, call: Call) -> None:
    """Make each call once, which must succeed and warms the contender up."""
    for body in call.bodies:
        answer = _post(contender, call.path, body, JSON | call.headers)
        assert "error" not in answer, (contender.name, call.path, answer)


def _compared(
    title: str, contenders: list[Contender], kinds: Sequence[str], calls: dict[str, Call], bodies: Path
) -> BenchTable:
    """Measure kinds of calls, the contenders in turn in each round."""
    rows = []
    shuffled, order = random.Random(0), list(contenders)
    for kind in kinds:
        for connections in CONNECTIONS:
            cells = {each.name: Cell() for each in contenders}
            for _ in range(ROUNDS):
                shuffled.shuffle(order)
                for contender in order:
                    before = contender.processor_seconds()
                    run = _load(contender, kind, calls[kind], bodies, connections=connections, seconds=SECONDS).result()
                    cells[contender.name].add(run, contender.processor_seconds() - before)
            rows += [[kind, str(connections), each.name, *cells[each.name].row()] for each in contenders]
    return BenchTable(
        title,
        ["call", "connections", "", *COLUMNS],
        rows,
        [
            f"Medians of {ROUNDS} interleaved rounds of {SECONDS} s, errors of all rounds. The last columns are",
            "the processor time a call of the load generator, the DynamoDB engine, the index, and the server itself.",
        ],
    )


def _load(contender: Contender, kind: str, call: Call, bodies: Path, *, connections: int, seconds: int) -> Load:
    file = bodies / kind.replace("/", "-")
    if not file.exists():
        file.write_text("".join(f"{json.dumps(each, ensure_ascii=False)}\n" for each in call.bodies))
    return Load(contender.address + call.path, file, JSON | call.headers, connections, seconds)


def _mixed(contenders: list[Contender], calls: dict[str, Call], bodies: Path) -> BenchTable:
    """Load each contender with clients of all kinds at once."""
    rows = []
    for contender in contenders:
        loads = {
            kind: _load(contender, kind, calls[kind], bodies, connections=clients, seconds=MIXED_SECONDS)
            for kind, clients in MIX.items()
        }
        for kind, running in loads.items():
            run = running.result()
            waits = [ms(each) for each in (run.p50, run.p99, run.longest)]
            rate = f"{run.calls / run.seconds:,.0f}"
            rows.append([contender.name, kind, str(MIX[kind]), rate, *waits, str(run.errors)])
    return BenchTable(
        f"{MIXED_SECONDS} s of {sum(MIX.values())} clients",
        ["", "call", "clients", "calls/s", "p50", "p99", "longest", "errors"],
        rows,
    )


def _resources(contender: Contender) -> list[str]:
    """Return the memory of each part, and the share of a core that the contender takes without a call."""
    before = contender.processor_seconds().total()
    time.sleep(IDLE_SECONDS)
    share = (contender.processor_seconds().total() - before) / IDLE_SECONDS
    parts = contender.parts()
    memory = (f"{memory_bytes(parts[part]) / 2**20:,.0f} MB" if part in parts else "-" for part in PARTS)
    return [*memory, f"{share:.0%}"]
