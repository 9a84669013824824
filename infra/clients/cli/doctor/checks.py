"""The checks for one machine and for deployments that need the template or HTTP: tables, HTTP endpoint."""

from __future__ import annotations

import json
import time
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final

from infra.clients.cli.target import short_name, table_name
from infra.local.template import load
from shared.platform.http import ConnectionFailed, send_once
from shared.services.diagnostics import check_format

if TYPE_CHECKING:
    from shared.services.diagnostics import CheckReport

_TIMEOUT_SECONDS: Final = 5.0
_MAX_SKEW_SECONDS: Final = 60


def check_tables(report: CheckReport) -> None:
    """Check that each table of the template exists and has its stream."""
    from shared.aws.dynamodb import client

    for definition in load().tables:
        name = table_name(definition)
        with report.guard(name, "Deploy again, or start 'kho serve' once: both create the tables."):
            table = client().describe_table(TableName=name)["Table"]
            has_stream = table.get("StreamSpecification", {}).get("StreamEnabled", False)
            if table["TableStatus"] != "ACTIVE":
                report.wrong(name, f"The table is {table['TableStatus']}.", "Wait, and check again.")
            elif "StreamSpecification" in definition.creation and not has_stream:
                report.wrong(name, "The table has no stream for the workers.", "Deploy the template again.")
            else:
                check_format(report, name, short_name(definition))


def check_http_endpoint(report: CheckReport, address: str, advice: str) -> None:
    """Check that the HTTP endpoint responds, and compare its clock with this machine's."""
    with report.guard("HTTP", advice):
        try:
            status, headers, content = send_once("GET", f"{address}/health", {}, b"", _TIMEOUT_SECONDS)
        except ConnectionFailed as error:
            report.wrong("HTTP", f"{address} does not answer ({error}).", advice)
            return
        if status != 200:
            report.wrong("HTTP", f"{address}/health returns {status}.", advice)
            return
        health: dict[str, Any] = json.loads(content)
        report.good("HTTP", f"{address} answers, with {len(health['servers'])} servers.")
        _check_clock(report, headers.get("date"))


def _check_clock(report: CheckReport, date: str | None) -> None:
    if date is None:
        return
    skew = time.time() - parsedate_to_datetime(date).timestamp()
    if abs(skew) > _MAX_SKEW_SECONDS:
        report.wrong(
            "Clock",
            f"This machine's clock is {abs(skew):.0f} s {'ahead' if skew > 0 else 'behind'}.",
            "Synchronise it by NTP: signatures, tokens and scheduled deletions depend on the time.",
        )
    else:
        report.good("Clock", "It is correct.")
