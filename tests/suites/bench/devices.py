"""Calls to devices, compared with a bare request and reply over the same broker: in this process, and of a server."""

from __future__ import annotations

import importlib
import itertools
import json
import os
import queue
import random
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

from awscrt import io, mqtt5  # type: ignore[import-untyped]

from infra.local.iot.simulator.quirks import Quirk
from infra.local.sockets import listen
from shared.rpc.caller import LOCAL
from tests.helpers.device_backend import reset_settings
from tests.helpers.dynamodb import running_store
from tests.helpers.kho_server import KhoServer
from tests.helpers.wait import CEILING_SECONDS
from tests.suites.bench import tables as bench
from tests.suites.bench.size import sized
from tests.suites.bench.wrk import Load, LoadRun

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Call = Callable[[str, str], str]

DEVICES: Final = sized(20, full=1_000)
IN_FLIGHT: Final = sized(8, full=256)
CALLS: Final = sized(40, full=10_000)
ALONE: Final = sized(5, full=500)
CONNECTIONS: Final = sized((2,), full=(1, 16, 256))
SECONDS: Final = sized(1, full=3)
ROUNDS: Final = sized(1, full=7)
SERVED: Final = sized(2, full=100)
"""The devices of the server."""
SWITCH_SECONDS: Final = 0.0005
"""As 'kho serve' has it."""
TOKEN: Final = "bench"
ECHO: Final = "self.test.echo"
BARE: Final = "bare MQTT"
ROUTES: Final = ("/device-server/tools/call", "/mcp/devices/{id}")
WARMING: Final = 8
HEADERS: Final = {
    "content-type": "application/json",
    "accept": "application/json, text/event-stream",
    "mcp-protocol-version": "2025-11-25",
}
KHO: Final = str(Path(sys.executable).with_name("kho"))
STAGES: Final = {
    "look up the device, once in 10 s": "device_server.devices.require_device",
    "look up session and catalogue, once in 10 s": "shared.devices.device_client.DeviceClient._find_ready",
    "check the arguments": "shared.devices.device_client.validate_arguments",
    "hear the device's topic": "shared.devices.mqtt.transport.MqttTransport._subscribe",
    "send, by a signed HTTP request": "shared.devices.mqtt.transport.MqttTransport.send",
    "wait for the reply": "shared.devices.rpc.RpcClient._wait",
    "log and count": "shared.rpc.observation.record",
}

CACHED: Final = [name for name in STAGES if name.endswith("once in 10 s")]
"""The stages that a call may pass without work."""


class CallLost(Exception):
    """A call that was not answered."""


@dataclass
class AwscrtContender:
    """awscrt alone: publishes, and matches replies by the text that comes back; nothing is checked or logged."""

    port: int
    waiting: dict[str, queue.SimpleQueue[bytes]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._ids = itertools.count(1)
        connected = threading.Event()
        bootstrap = io.ClientBootstrap(group := io.EventLoopGroup(1), io.DefaultHostResolver(group))
        self.client = mqtt5.Client(
            mqtt5.ClientOptions(
                host_name="127.0.0.1",
                port=self.port,
                bootstrap=bootstrap,
                connect_options=mqtt5.ConnectPacket(
                    client_id="kho-backend-bare", username="kho", password=TOKEN.encode()
                ),
                on_publish_callback_fn=self._take,
                on_lifecycle_event_connection_success_fn=lambda _: connected.set(),
            )
        )
        self.client.start()
        assert connected.wait(CEILING_SECONDS)
        wanted = mqtt5.Subscription("devices/+/up", mqtt5.QoS.AT_MOST_ONCE)
        self.client.subscribe(mqtt5.SubscribePacket([wanted])).result(CEILING_SECONDS)

    def call(self, device_id: str, text: str) -> str:
        """One call; the text that came back."""
        arguments = {"name": ECHO, "arguments": {"text": text}}
        payload = {"jsonrpc": "2.0", "method": "tools/call", "params": arguments, "id": next(self._ids)}
        message = json.dumps({"session_id": "", "type": "mcp", "payload": payload}).encode()
        mine = self.waiting[text] = queue.SimpleQueue()
        self.client.publish(
            mqtt5.PublishPacket(topic=f"devices/{device_id}/down", payload=message, qos=mqtt5.QoS.AT_MOST_ONCE)
        )
        try:
            reply = mine.get(timeout=CEILING_SECONDS)
        except queue.Empty:
            raise CallLost("no reply") from None
        said: str = json.loads(reply)["payload"]["result"]["content"][0]["text"]
        return said

    def _take(self, data: mqtt5.PublishReceivedData) -> None:
        raw = bytes(data.publish_packet.payload)
        found = _TEXT.search(raw)
        mine = self.waiting.pop(found[1].decode(), None) if found else None
        if mine:
            mine.put(raw)


_TEXT: Final = re.compile(rb'"text":"([^"]*)"')


class DeviceServerContender:
    """Call the function through the JSON that endpoints send."""

    def __init__(self) -> None:
        from device_server.tools_call import handler

        self._handler = handler

    def call(self, device_id: str, text: str) -> str:
        """One call; the text that came back."""
        params = {"device_id": device_id, "name": ECHO, "arguments": {"text": text}, "timeout_ms": 25_000}
        call = {"method": "", "params": params, "caller": LOCAL.record(), "correlation_id": "bench-of-devices"}
        answer = json.loads(json.dumps(self._handler(json.loads(json.dumps(call)), None)))
        if "error" in answer:
            raise CallLost(answer["error"]["code"])
        said: str = answer["result"]["content"][0]["text"]
        return said


def tables() -> list[bench.BenchTable]:
    """Measure alone and in a crowd, ours and bare in turn."""
    sys.setswitchinterval(SWITCH_SECONDS)
    with ExitStack() as stack:
        stack.enter_context(running_store())
        port = stack.enter_context(_devices())
        stack.enter_context(_log_to_file())
        bare, ours = AwscrtContender(port), DeviceServerContender()
        ids = [f"sim-{number}" for number in range(1, DEVICES + 1)]
        _appear(ids)
        contenders: dict[str, Call] = {"bare awscrt": bare.call, "Kho": ours.call}
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kho-bench-")))
        return [_served(bare.call, ids[:SERVED], folder), _alone(contenders, ids), *_crowd(contenders, ids)]


def _served(bare: Call, ids: list[str], folder: Path) -> bench.BenchTable:
    """Measure the routes of a server, and the bare loop over a broker of its own, in turn."""
    rates: dict[tuple[int, str], list[float]] = defaultdict(list)
    errors = Counter[str]()
    with ExitStack() as stack:
        server = stack.enter_context(KhoServer(folder / "data", production_limits=True, measured=True))
        stack.enter_context(_fleet(f"mqtt://127.0.0.1:{server.mqtt_port}", len(ids)))
        loads = {route: _route_load(server, route, ids, folder / str(at)) for at, route in enumerate(ROUTES)}
        order = list((loads | {BARE: partial(_bare_load, bare, ids)}).items())
        shuffled = random.Random(0)
        for at_once, _ in itertools.product(CONNECTIONS, range(ROUNDS)):
            shuffled.shuffle(order)
            for name, load in order:
                run = load(at_once)
                rates[at_once, name].append(run.calls / run.seconds)
                errors[name] += run.errors
    rows = []
    for at_once in CONNECTIONS:
        bare_rate, direct, mcp = (statistics.median(rates[at_once, name]) for name in (BARE, *ROUTES))
        ratios = [f"{each:.2f}" for each in (direct / bare_rate, mcp / direct)]
        rows.append([str(at_once), *(f"{each:,.0f}" for each in (bare_rate, direct, mcp)), *ratios])
    return bench.BenchTable(
        "Calls/s of a server's routes, next to a bare MQTT loop",
        ["in flight", BARE, *ROUTES, "direct / bare", "MCP / direct"],
        rows,
        [
            f"Medians of {ROUNDS} interleaved rounds of {SECONDS} s, {len(ids)} devices in turn. wrk calls the routes",
            "of `kho serve`; the bare loop matches replies in Python, over a broker that does nothing else.",
            f"Errors: {', '.join(f'{name} {errors[name]}' for name in ROUTES)}.",
        ],
    )


def _route_load(server: KhoServer, route: str, ids: list[str], file: Path) -> Callable[[int], LoadRun]:
    """Call each device once, whose session starts then. Return the load of a route on a number of connections."""
    lines = [_line(route.format(id=each), each) for each in ids]
    with ThreadPoolExecutor(WARMING) as callers:
        list(callers.map(partial(_verify, server), lines))
    file.write_text("".join(lines))
    url = server.address + route.format(id=ids[0])
    return lambda connections: Load(url, file, HEADERS, connections, SECONDS).result()


def _line(path: str, device_id: str) -> str:
    """Return the line of a call in a file for wrk."""
    params = {"device_id": device_id, "name": ECHO, "arguments": {"text": "bench"}}
    body: dict[str, Any] = params
    if path.startswith("/mcp/"):
        del params["device_id"]
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return f"{path}\t{json.dumps(body)}\n"


def _verify(server: KhoServer, line: str) -> None:
    """Make a call, which must succeed."""
    path, _, body = line.partition("\t")
    response = server.post(path, body.encode(), **HEADERS)
    assert response.status == 200, response.data
    assert b"bench" in response.data, response.data


def _bare_load(call: Call, ids: list[str], at_once: int) -> LoadRun:
    """Call devices in turn from threads until the time is over."""
    numbers, end = itertools.count(), time.perf_counter() + SECONDS

    def repeat(_: int) -> int:
        calls = 0
        while time.perf_counter() < end:
            number = next(numbers)
            assert call(ids[number % len(ids)], f"bare {number}") == f"bare {number}"
            calls += 1
        return calls

    started = time.perf_counter()
    with ThreadPoolExecutor(at_once) as callers:
        calls = sum(callers.map(repeat, range(at_once)))
    return LoadRun(calls, time.perf_counter() - started, 0, 0, 0, 0)


def _alone(contenders: dict[str, Call], ids: list[str]) -> bench.BenchTable:
    numbers = itertools.count()
    runs = {name: lambda call=call: call(ids[0], f"alone {next(numbers)}") for name, call in contenders.items()}
    timings = bench.interleaved(runs, ALONE)
    rows = [[name, bench.ms(each.p50), bench.ms(each.p99)] for name, each in timings.items()]
    added = timings["Kho"].p50 - timings["bare awscrt"].p50
    return bench.BenchTable(
        "One call at a time",
        ["", "p50", "p99"],
        rows,
        [f"{ALONE} calls each, in turn. Ours adds {bench.ms(added)}: validation, catalogue and logs included."],
    )


def _crowd(contenders: dict[str, Call], ids: list[str]) -> list[bench.BenchTable]:
    rows, notes = (
        [],
        ["Callers, broker and devices are three processes on the same cores, and both sides call the same devices."],
    )
    for name, call in contenders.items():
        _run(call, ids, "warm", DEVICES)
        waits, seconds, wrong = _run(call, ids, "crowd", CALLS)
        swapped = wrong.pop("swapped", 0)
        timing = bench.Timing(waits)
        rate = f"{CALLS / seconds:,.0f}"
        rows.append([name, rate, bench.ms(timing.p50), bench.ms(timing.p99), str(CALLS - len(waits)), str(swapped)])
        notes += [f"{name} lost {number} with {why}." for why, number in wrong.items()]
    crowd = bench.BenchTable(
        f"{CALLS:,} calls to {DEVICES:,} devices, {IN_FLIGHT} in flight",
        ["", "calls/s", "p50", "p99", "lost", "swapped"],
        rows,
        notes,
    )
    with _watched() as (spent, took):
        _run(contenders["Kho"], ids, "watched", CALLS)
    unseen = [name for name in STAGES if name not in CACHED and not took[name]]
    assert not unseen, f"no call went through {unseen}"
    stages = [[name, bench.ms(spent[name] / CALLS), f"{took[name] / CALLS:.2f}"] for name in STAGES]
    where = bench.BenchTable(
        f"Where a call's time goes, {IN_FLIGHT} in flight",
        ["", "a call", "times a call"],
        stages,
        [
            f"Wall-clock time in one thread of the {IN_FLIGHT}: waiting for the interpreter is in every line, for the "
            "one log in the last."
        ],
    )
    return [crowd, where]


def _run(call: Call, ids: list[str], label: str, calls: int) -> tuple[list[float], float, Counter[str]]:
    """Make the calls. Return each duration, the total, and the calls that got no reply or a wrong one."""
    waits: list[float] = []
    wrong = Counter[str]()

    def one(number: int) -> None:
        text = f"{label} {number}"
        started = time.perf_counter()
        try:
            wrong["swapped"] += call(ids[number % len(ids)], text) != text
        except CallLost as error:
            wrong[str(error)] += 1
            return
        waits.append(time.perf_counter() - started)

    started = time.perf_counter()
    with ThreadPoolExecutor(IN_FLIGHT) as callers:
        list(callers.map(one, range(calls)))
    return waits, time.perf_counter() - started, wrong


@contextmanager
def _watched() -> Iterator[tuple[dict[str, float], Counter[str]]]:
    """Time what the stages take, all calls together."""
    spent: dict[str, float] = defaultdict(float)
    took: Counter[str] = Counter()

    def timed(name: str, run: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*arguments: Any, **named: Any) -> Any:
            started = time.perf_counter()
            try:
                return run(*arguments, **named)
            finally:
                spent[name] += time.perf_counter() - started
                took[name] += 1

        return wrapper

    with ExitStack() as stack:
        for name, where in STAGES.items():
            owner, _, attribute = where.rpartition(".")
            module, _, kind = owner.rpartition(".")
            holder = importlib.import_module(owner) if not kind[:1].isupper() else None
            holder = holder or getattr(importlib.import_module(module), kind)
            stack.enter_context(patch.object(holder, attribute, timed(name, getattr(holder, attribute))))
        yield spent, took


@contextmanager
def _log_to_file() -> Iterator[None]:
    """Write this process's log to a temporary file."""
    with (
        tempfile.TemporaryDirectory(prefix="kho-bench-") as folder,
        patch.dict(os.environ, KHO_LOG_FILE=str(Path(folder) / "kho.log")),
    ):
        yield


def _appear(ids: list[str]) -> None:
    from shared.devices.registry import registry

    with ThreadPoolExecutor(16) as several:
        list(several.map(registry().find_or_register, ids))


@contextmanager
def _devices() -> Iterator[int]:
    """Run a broker without a rate limit and a fleet, each in a process of its own. Yield the broker's port."""
    with listen("127.0.0.1", 0) as one, listen("127.0.0.1", 0) as other:
        port, plane = one.getsockname()[1], other.getsockname()[1]
    command = [sys.executable, "-m", "tests.helpers.broker_process", str(port), str(plane), TOKEN, "unlimited"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as broker, ExitStack() as stack:
        stack.callback(broker.kill)
        assert broker.stdout
        assert broker.stdout.readline() == "ready\n"
        url = f"mqtt://127.0.0.1:{port}"
        os.environ |= {
            "KHO_MQTT_URL": url,
            "KHO_MQTT_TOKEN": TOKEN,
            "AWS_ENDPOINT_URL_IOT_DATA_PLANE": f"http://127.0.0.1:{plane}/{TOKEN}",
        }
        reset_settings()
        with _fleet(url, DEVICES):
            yield port


@contextmanager
def _fleet(url: str, devices: int) -> Iterator[None]:
    """Run devices that answer each call with its text."""
    simulate = [KHO, "devices", "simulate", "-n", str(devices), "--mqtt-url", url, "--quirk", Quirk.SUBSCRIBES.value]
    with subprocess.Popen(simulate, stdout=subprocess.PIPE, text=True) as fleet:
        try:
            assert fleet.stdout
            assert f"{devices} of {devices}" in fleet.stdout.readline()
            yield
        finally:
            fleet.kill()
