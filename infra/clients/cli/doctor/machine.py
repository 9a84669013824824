"""The checks of this machine."""

from __future__ import annotations

import shutil
import socket
from collections import Counter
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from infra.clients.cli.doctor import checks
from infra.clients.cli.index_record import check_splitter
from infra.clients.cli.target import open_stores
from infra.local.data_folder import DataFolderError, read_server_info
from infra.local.dynamodb import DURABLE
from infra.local.integrity import find_problems, reported_problems
from shared.aws import dead_letters
from shared.platform.config import config
from shared.services import diagnostics

if TYPE_CHECKING:
    from pathlib import Path

    from infra.clients.cli.target import DataTarget
    from shared.services.diagnostics import CheckReport

_MIN_FREE_BYTES: Final = 1 << 30


def check(target: DataTarget, report: CheckReport) -> None:
    """Check the data folder and the server that runs on it."""
    data = target.data.resolve()
    _check_platform(report)
    if not data.exists():
        report.wrong("Data", f"There is no data folder {data}.", "Correct --data (KHO_DATA); 'kho serve' creates it.")
        return
    with report.guard("Data", f"Make {data} a writable folder, or choose another with --data."):
        free = shutil.disk_usage(data).free
        if free < _MIN_FREE_BYTES:
            report.note("Data", f"Only {free >> 20} MB are free at {data}.", "Free some disk space.")
        else:
            report.good("Data", f"{data}, {free >> 30} GB free.")
    try:
        running = read_server_info(data)
    except DataFolderError as error:
        report.wrong("Server", f"{error}.", "Stop the process that uses it, or choose another folder with --data.")
        return
    if running:
        checks.check_http_endpoint(report, running["address"], "Restart 'kho serve'.")
        address = urlsplit(running["mqtt_url"])
        with report.guard("Devices", "Restart 'kho serve'."):
            socket.create_connection((address.hostname or "", address.port or 0), timeout=5).close()
            report.good("Devices", f"{running['mqtt_url']} accepts connections.")
        for problem in reported_problems(data):
            report.wrong("Data", problem, "Do what it says.")
    else:
        report.note("Server", "None is running here.", "Start it: kho serve")
    _check_dead_letters(data / dead_letters.FILE_NAME, report)
    with open_stores(target):
        checks.check_tables(report)
        diagnostics.check_keys(report, "kho keys create --tenant <name> --role writer")
        if running and not config().qdrant_url:
            report.good("Qdrant", "The engine is embedded in the running server.")
        else:
            diagnostics.check_index(report)
        check_splitter(report)
        if not running:
            for problem in find_problems(data, embedded=DURABLE and not target.aws_endpoint):
                report.wrong("Data", problem, "Do what it says.")
        diagnostics.check_model(report)


def _check_dead_letters(file: Path, report: CheckReport) -> None:
    """Report what workers gave up, by worker and reason."""
    with report.guard("Dead letters", f"Make {file} readable."):
        letters = Counter((each.method.rpartition("/")[2], each.code) for each in dead_letters.read(file))
        if letters:
            given_up = ", ".join(f"{number} of {worker} ({code})" for (worker, code), number in letters.most_common())
            advice = f"See dead-letters in docs/operating.md. When they are repaired, delete {file}."
            report.wrong("Dead letters", f"Workers gave up: {given_up}.", advice)
        else:
            report.good("Dead letters", "There are none.")


def _check_platform(report: CheckReport) -> None:
    if DURABLE:
        report.good("Platform", "It supports the embedded store.")
    else:
        report.note(
            "Platform",
            "It does not support the embedded store: an in-memory emulator is used, and data is lost at exit.",
            "Set a DynamoDB endpoint with --aws-endpoint to keep data.",
        )
