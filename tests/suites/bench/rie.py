"""Functions under Lambda's own runtime and its emulator: their first moments, their calls, and what they import."""

from __future__ import annotations

import os
import re
import statistics
import subprocess
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from tests.events import event
from tests.suites.bench import tables as bench
from tests.suites.bench.size import sized
from tests.suites.rie.embedding import PASSAGES, TOKENS, measure_embedding
from tests.suites.rie.emulator import Instance, Lambda, crashed, service
from tests.suites.rie.functions import deployed_functions
from tests.suites.rie.installation import ROOT, TARGET, installed, peers, version

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tests.suites.rie.functions import DeployedFunction
    from tests.suites.rie.installation import Installed

STARTS: Final = sized(1, full=3)
BESIDE_OTHERS: Final = sized(1, full=15)
WARM: Final = sized(1, full=20)
OURS: Final = "memory_server-add_message"
STARTED: Final = sized(
    (OURS, "endpoints-jsonrpc", "recall_kit-submit_experience", "agent_data-query_knowledge"), full=()
)
"""The functions that are started; all if empty."""
QUERIES: Final = re.compile(r"-query_|tool_server-search$")
"""The functions that search by meaning for a caller who waits."""
PROMISED_MS: Final = 300
"""The processor time that a query function's start and first call take at most."""
OTHERS: Final = {
    "FastAPI + Mangum": "peers.fastapi_mangum.handler",
    "awslabs `mcp-lambda-handler`": "peers.awslabs_handler.handler",
}
LATER: Final = {"KnowledgeLayer": "shared.search.store.server"}
"""The packages that functions with this layer import at their first call."""
NAMED: Final = "With `{}`, which the first call imports."
IMPORTS: Final = sized(1, full=7)
RANKED: Final = 12
_IMPORTED: Final = re.compile(r"import time:\s+(\d+) \|\s+\d+ \| +([\w.]+)$", re.MULTILINE)


@dataclass(slots=True)
class Measured:
    """The measurements of one function, in milliseconds."""

    init: list[float] = field(default_factory=list)
    first: list[float] = field(default_factory=list)
    warm: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)

    def note(self, instance: Instance, processor_ms: float) -> None:
        """Keep what an instance has seen: its start, its first call and the others."""
        calls = instance.calls_ms()
        self.init.append(instance.init_ms())
        self.first.append(calls[0])
        self.warm += calls[1:]
        self.processor.append(processor_ms)

    def row(self) -> list[str]:
        """Return the medians."""
        return [f"{statistics.median(each):.0f} ms" for each in (self.init, self.first, self.processor)] + [
            f"{statistics.median(self.warm):.1f} ms"
        ]


def tables() -> list[bench.BenchTable]:
    """Start every function several times, call it, and look at what the worst and a usual one import."""
    fetched, functions = installed(), deployed_functions()
    started = [function for function in functions if not STARTED or function.name in STARTED]
    os.environ["KHO_LOG_FILE"] = str(TARGET / "preparing.log")
    from tests.suites.rie.environment import running_environment  # its import configures the log

    with running_environment() as environment:
        aws = Lambda(fetched, functions, environment)
        try:
            with service(aws, "kho-") as url:
                environment["AWS_ENDPOINT_URL_LAMBDA"] = url
                measured = _each(fetched, started, environment)
        finally:
            aws.close()
        peers = _measure_peers(fetched, functions, environment)
        embedding = _embedding(fetched, functions, environment)
    worst = max(started, key=lambda function: statistics.median(measured[function.name].processor))
    usual = next(function for function in functions if function.name == OURS)
    return [
        _starts(started, measured, fetched),
        embedding,
        _compared(peers),
        _imports(fetched, usual),
        _imports(fetched, worst, "The slowest to start"),
    ]


def _each(
    fetched: Installed, functions: Sequence[DeployedFunction], environment: Mapping[str, str]
) -> dict[str, Measured]:
    measured = {function.name: Measured() for function in functions}
    for _ in range(STARTS):
        for function in functions:
            _start(fetched, function, environment, measured[function.name], WARM)
    return measured


def _start(
    fetched: Installed, function: DeployedFunction, environment: Mapping[str, str], into: Measured, warm: int
) -> None:
    instance = Instance(fetched, function, environment, _with_peers(function))
    try:
        sent = event(function.name if function.name not in OTHERS else OURS)
        answer = instance.invoke(sent)
        assert not crashed(answer), (function.name, answer)
        processor_ms = instance.processor_ms()
        for _ in range(warm):
            instance.invoke(sent)
        into.note(instance, processor_ms)
    finally:
        instance.close()


def _with_peers(function: DeployedFunction) -> list[Path]:
    return [peers(), ROOT / "tests" / "suites" / "rie"] if function.name in OTHERS else []


def _measure_peers(
    fetched: Installed, functions: Sequence[DeployedFunction], environment: Mapping[str, str]
) -> dict[str, Measured]:
    ours = next(function for function in functions if function.name == OURS)
    contenders = [ours, *(replace(ours, name=name, handler=handler, layers=()) for name, handler in OTHERS.items())]
    measured = {contender.name: Measured() for contender in contenders}
    for _ in range(BESIDE_OTHERS):
        for contender in contenders:
            _start(fetched, contender, environment, measured[contender.name], WARM)
    return measured


def _starts(
    functions: Sequence[DeployedFunction], measured: dict[str, Measured], fetched: Installed
) -> bench.BenchTable:
    rows = [[function.name, *measured[function.name].row()] for function in functions]
    rows.sort(key=lambda row: -statistics.median(measured[row[0]].processor))
    notes = [
        f"Python {version(fetched.python)}. Medians of {STARTS} new instances, and of {WARM} further calls to each.",
        "Init is what the emulator reports from the runtime's start to its first question for an event; the first call",
        "follows it. The processor's time is that of both together, and tells more than the clock on a busy machine.",
        "The slowest come first. Endpoints' calls include the functions that they call; a write with a request_id is",
        "answered from its record from the second call on.",
        _promise(measured),
    ]
    return bench.BenchTable(
        "Starts and calls of every function",
        ["function", "init", "first call", "processor", "a warm call"],
        rows,
        notes,
    )


def _promise(measured: Mapping[str, Measured]) -> str:
    """Compare the query functions with their promise. Nothing asserts it, as the machine's speed decides."""
    times = {name: statistics.median(each.processor) for name, each in measured.items() if QUERIES.search(name)}
    slow = [f"`{name}` ({time:.0f} ms)" for name, time in times.items() if time > PROMISED_MS]
    return (
        f"The promise is {PROMISED_MS} ms of processor time or less for each query function (`*-query_*`,\n"
        f"`tool_server-search`). {len(slow)} of {len(times)} exceed it{': ' if slow else ''}{', '.join(slow)}."
    )


def _embedding(
    fetched: Installed, functions: Sequence[DeployedFunction], environment: Mapping[str, str]
) -> bench.BenchTable:
    measured = [measure_embedding(fetched, functions, environment) for _ in range(STARTS)]

    def median(name: str) -> str:
        return f"{statistics.median(getattr(each, name) for each in measured):.0f}"

    row = [f"{median(name)} ms" for name in ("init", "processor", "query", "passages")] + [f"{median('peak_mb')} MB"]
    notes = [
        f"Medians of {STARTS} new instances. The processor's time is that of the start and the first query. A passage",
        f"has {TOKENS} tokens. The peak is the most memory that the process had, with the model, after all calls.",
    ]
    columns = ["init", "processor", "a warm query", f"{PASSAGES} passages", "peak memory"]
    return bench.BenchTable("The embedding function", columns, [row], notes)


def _compared(measured: dict[str, Measured]) -> bench.BenchTable:
    rows = [[f"Kho, `{name}`" if name == OURS else name, *measured[name].row()] for name in measured]
    notes = [
        f"Medians of {BESIDE_OTHERS} new instances each, interleaved, on one store; all make the same two writes to a",
        "table. The others make boto3's client as they are imported; ours speaks DynamoDB's protocol itself",
        "(`shared/aws/signed_client.py`), checks roles, logs the call and counts it, which they do not.",
    ]
    return bench.BenchTable(
        "A memory method compared with others", ["what", "init", "first call", "processor", "a warm call"], rows, notes
    )


def _imports(fetched: Installed, function: DeployedFunction, title: str = "A memory method") -> bench.BenchTable:
    """Measure a function's imports by package, those of its first call included."""
    module = function.handler.rpartition(".")[0]
    later = [name for layer, name in LATER.items() if layer in function.layers]
    path = os.pathsep.join(map(str, [fetched.task, *(fetched.layer(layer) for layer in function.layers)]))
    environment = {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "PATH": os.environ["PATH"]}
    best: dict[str, int] = {}
    for _ in range(IMPORTS):
        ran = subprocess.run(
            [str(fetched.python), "-X", "importtime", "-c", f"import {', '.join([module, *later])}"],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        spent: Counter[str] = Counter()
        for microseconds, name in _IMPORTED.findall(ran.stderr):
            spent[name.partition(".")[0].lstrip("_")] += int(microseconds)
        best |= {package: min(total, best.get(package, total)) for package, total in spent.items()}
    ranked = sorted(best.items(), key=lambda each: -each[1])
    rows = [[package, bench.ms(microseconds / 1e6)] for package, microseconds in ranked[:RANKED]]
    rows.append([f"{len(ranked) - RANKED} others", bench.ms(sum(each for _, each in ranked[RANKED:]) / 1e6)])
    notes = [f"The best of {IMPORTS}, each package without what it imports itself.", *map(NAMED.format, later)]
    return bench.BenchTable(f"{title}: what `{module}` imports, by package", ["package", "time"], rows, notes)
