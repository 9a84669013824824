"""The broker: the cost of a call over MQTT, compared with mosquitto if that is installed."""

from __future__ import annotations

import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from awscrt import io, mqtt5  # type: ignore[import-untyped]

from infra.local.iot.broker.authorization import FleetAccessRules
from infra.local.iot.broker.limits import Limits
from infra.local.iot.broker.local_broker import LocalBroker
from infra.local.sockets import listen
from tests.helpers.mqtt_client import admit_all
from tests.helpers.wait import CEILING_SECONDS, until
from tests.suites.bench import tables as bench
from tests.suites.bench.size import sized
from tests.suites.mosquitto.broker import environment, fetch, find

if TYPE_CHECKING:
    from collections.abc import Iterator

TOKEN: Final = "bench"
UP, DOWN = "devices/bench/up", "devices/bench/down"
REQUEST: Final = b'{"type":"mcp","payload":{"jsonrpc":"2.0","id":%d,"method":"tools/call"}}'
LOADS: Final = sized(((1, 10), (16, 100)), full=((1, 1_000), (64, 4_000), (256, 10_000)))
"""The numbers of calls in flight and in all."""
ROUNDS: Final = sized(1, full=3)
TICKS: Final = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class BrokerProcess:
    """A broker in a process of its own."""

    port: int
    pid: int

    def cpu_seconds(self) -> float:
        """Return the CPU time used so far."""
        ran = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(ran[11]) + int(ran[12])) / TICKS


@dataclass
class Loop:
    """A caller and a device that answers it, bare: nothing is checked, matched or logged."""

    broker: BrokerProcess
    bootstrap: io.ClientBootstrap
    waits: list[float] = field(default_factory=list)
    device: Any = field(init=False)
    caller: Any = field(init=False)

    def __post_init__(self) -> None:
        self.turns = threading.Semaphore(0)
        self.sent: dict[bytes, float] = {}
        self.device = self._client("bench", lambda packet: self._publish(self.device, UP, packet.payload), DOWN)
        self.caller = self._client("kho-backend-bench", self._answered, UP)

    def run(self, in_flight: int, calls: int) -> float:
        """Make the calls. Return the seconds that they took."""
        for _ in range(in_flight):
            self.turns.release()
        started = time.perf_counter()
        for number in range(calls):
            self.turns.acquire()
            request = REQUEST % number
            self.sent[request] = time.perf_counter()
            self._publish(self.caller, DOWN, request)
        for _ in range(in_flight):
            self.turns.acquire()
        return time.perf_counter() - started

    def close(self) -> None:
        """Disconnect."""
        self.caller.stop()
        self.device.stop()

    def _answered(self, packet: mqtt5.PublishPacket) -> None:
        self.waits.append(time.perf_counter() - self.sent.pop(packet.payload))
        self.turns.release()

    def _publish(self, client: mqtt5.Client, topic: str, payload: bytes) -> None:
        client.publish(mqtt5.PublishPacket(topic=topic, payload=payload, qos=mqtt5.QoS.AT_MOST_ONCE))

    def _client(self, client_id: str, take: Any, topic: str) -> mqtt5.Client:
        connected = threading.Event()
        client = mqtt5.Client(
            mqtt5.ClientOptions(
                host_name="127.0.0.1",
                port=self.broker.port,
                bootstrap=self.bootstrap,
                connect_options=mqtt5.ConnectPacket(client_id=client_id, username="kho", password=TOKEN.encode()),
                on_publish_callback_fn=lambda data: take(data.publish_packet),
                on_lifecycle_event_connection_success_fn=lambda _: connected.set(),
            )
        )
        client.start()
        assert connected.wait(CEILING_SECONDS)
        wanted = mqtt5.Subscription(topic, mqtt5.QoS.AT_MOST_ONCE)
        client.subscribe(mqtt5.SubscribePacket([wanted])).result(CEILING_SECONDS)
        return client


def tables() -> list[bench.BenchTable]:
    """Measure each broker in turn, round by round, through awscrt."""
    bootstrap = io.ClientBootstrap(group := io.EventLoopGroup(1), io.DefaultHostResolver(group))
    with ExitStack() as stack:
        loops = {"Kho": Loop(stack.enter_context(_ours()), bootstrap)}
        if find() is None and shutil.which("apt-get"):
            fetch()
        installed = find()
        if installed:
            loops["mosquitto"] = Loop(stack.enter_context(_mosquitto(installed)), bootstrap)
        rows = [row for in_flight, calls in LOADS for row in _measured(loops, in_flight, calls)]
        for loop in loops.values():
            loop.close()
    notes = [
        f"Caller and device are two clients of awscrt in one process, the broker is another process; QoS 0, "
        f"{len(REQUEST)} bytes, two messages a call. Median of {ROUNDS} rounds, each of every broker; no rate limit."
    ]
    if not installed:
        notes.append("mosquitto is not installed here, and there is no apt-get to fetch it with.")
    columns = ["in flight", "broker", "calls/s", "p50", "p99", "the broker's CPU a call"]
    return [bench.BenchTable("A call and its answer over MQTT 5", columns, rows, notes)]


def _measured(loops: dict[str, Loop], in_flight: int, calls: int) -> list[list[str]]:
    seconds: dict[str, list[float]] = {name: [] for name in loops}
    cpu: dict[str, float] = dict.fromkeys(loops, 0.0)
    for loop in loops.values():
        loop.run(in_flight, in_flight)
        loop.waits.clear()
    for _ in range(ROUNDS):
        for name, loop in loops.items():
            before = loop.broker.cpu_seconds()
            seconds[name].append(loop.run(in_flight, calls))
            cpu[name] += loop.broker.cpu_seconds() - before
    rows = []
    for name, loop in loops.items():
        timing = bench.Timing(loop.waits)
        rate = f"{calls / statistics.median(seconds[name]):,.0f}"
        used = f"{cpu[name] / calls / ROUNDS * 1e6:.0f} µs"
        rows.append([str(in_flight), name, rate, bench.ms(timing.p50), bench.ms(timing.p99), used])
    return rows


@contextmanager
def _ours() -> Iterator[BrokerProcess]:
    process = subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    try:
        yield BrokerProcess(int(process.stdout.readline()), process.pid)
    finally:
        process.communicate()


@contextmanager
def _mosquitto(program: Path) -> Iterator[BrokerProcess]:
    with listen("127.0.0.1", 0) as probe:
        port = probe.getsockname()[1]
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as settings:
        settings.write(f"listener {port} 127.0.0.1\nallow_anonymous true\n")
        settings.flush()
        process = subprocess.Popen([program, "-c", settings.name], stderr=subprocess.DEVNULL, env=environment())
        try:
            until(lambda: _listens(port))
            yield BrokerProcess(port, process.pid)
        finally:
            process.terminate()
            process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _serve() -> None:
    """Be the broker until the standard input ends."""
    listener = listen("127.0.0.1", 0)
    LocalBroker(listener, FleetAccessRules(TOKEN, admit_all), Limits(publishes_per_second=None))
    print(listener.getsockname()[1], flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    _serve()
