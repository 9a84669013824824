"""What is looked at on one machine alone."""

from __future__ import annotations

import shutil
import socket
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from infra.cli.doctor import checks
from infra.cli.target import open_stores
from infra.local.data_folder import DataFolderInUse, read_server_info
from infra.local.dynamodb import DURABLE
from shared.config import config

if TYPE_CHECKING:
    from infra.cli.doctor.findings import CheckReport
    from infra.cli.target import DataTarget

_ROOM: Final = 1 << 30


def look(where: DataTarget, findings: CheckReport) -> None:
    """Look at the data folder, and at the server that runs on it."""
    data = where.data.resolve()
    _check_platform(findings)
    with findings.guard("Data", f"Make {data} a folder that you may write to, or choose another with --data."):
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
        free = shutil.disk_usage(data).free
        if free < _ROOM:
            findings.note("Data", f"Only {free >> 20} MB are free at {data}.", "Make room.")
        else:
            findings.good("Data", f"{data}, {free >> 30} GB free.")
    try:
        running = read_server_info(data)
    except DataFolderInUse as error:
        findings.wrong("Server", f"{error}.", "Stop what uses it, or choose another folder with --data.")
        return
    if running:
        checks.check_http_endpoint(findings, running["address"], "Stop 'kho serve' and start it again.")
        _check_broker(findings, running["mqtt_url"])
    else:
        findings.note("Server", "None is running here.", "Start it: kho serve")
    with open_stores(where):
        checks.check_tables(findings)
        checks.check_keys(findings, "kho keys create --tenant <name> --role writer")
        if running and not config().qdrant_url:
            findings.good("Qdrant", "It is embedded, and the running server has it.")
        else:
            checks.check_index(findings)
        checks.check_model(findings)


def _check_platform(findings: CheckReport) -> None:
    if DURABLE:
        findings.good("Platform", "It has the embedded store.")
    else:
        findings.note(
            "Platform",
            "The embedded store does not run here: an emulator in memory stands in, and keeps nothing.",
            "Name a DynamoDB endpoint with --aws-endpoint to keep data.",
        )


def _check_broker(findings: CheckReport, url: str) -> None:
    parts = urlsplit(url)
    with findings.guard("Devices", "Stop 'kho serve' and start it again."):
        socket.create_connection((parts.hostname or "", parts.port or 0), timeout=5).close()
        findings.good("Devices", f"{url} takes connections.")
