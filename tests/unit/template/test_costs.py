"""The arithmetic of docs/costs.md, and its numbers that follow from the template."""

from __future__ import annotations

import re

from infra.deploy.observability import FILE as OBSERVABILITY
from infra.local.template import FILE, document
from shared.access.rate_limits import _BLOCKS
from shared.platform.config import Config

PAGE = (FILE.parent / "docs" / "costs.md").read_text(encoding="utf-8")
COLUMNS = 3


def rows(section: str) -> dict[str, list[str]]:
    """Return the cells of a section's table by the first of each row."""
    table = re.findall(r"^\| (.+) \|$", section, re.MULTILINE)
    return {name: cells for name, *cells in (row.split(" | ") for row in table[1:])}


SUMMARY = rows(PAGE.partition("## Calculation")[0])
UNITS = rows(PAGE.partition("## Calculation")[2].partition("## Other costs")[0])


def number(cell: str) -> float:
    return float(cell.strip("* ").replace(",", ""))


def monitored(condition: str) -> int:
    """Count the metrics of the alarms under a condition: each is billed."""
    resources = document(OBSERVABILITY.read_text(encoding="utf-8"))["Resources"].values()
    alarms = [
        each["Properties"]
        for each in resources
        if each.get("Condition") == condition and "AlarmName" in each["Properties"]
    ]
    return sum(sum("MetricStat" in metric for metric in each["Metrics"]) if "Metrics" in each else 1 for each in alarms)


def test_each_cost_is_price_times_units() -> None:
    assert UNITS.keys() == SUMMARY.keys() - {"**total**"}
    for name, (price, _, *units) in UNITS.items():
        costs = [number(price) * number(each) for each in units]
        assert all(abs(number(cell) - cost) <= 0.0051 for cell, cost in zip(SUMMARY[name], costs, strict=True)), name


def test_totals_are_the_sums() -> None:
    for column in range(COLUMNS):
        parts = [number(cells[column]) for name, cells in SUMMARY.items() if name != "**total**"]
        assert round(sum(parts), 2) == number(SUMMARY["**total**"][column])


def test_units_follow_from_the_calls() -> None:
    """A thousand and a million calls a day, 30 days, in the units of the page."""
    for column, calls in ((1, 30_000), (2, 30_000_000)):
        units = {name: number(cells[2 + column]) for name, cells in UNITS.items()}
        assert units["HTTP API"] == calls / 1e6
        assert units["Lambda, requests"] == 2 * calls / 1e6
        assert units["Lambda, time"] == round(calls * (0.5 * 0.015 + 1.0 * 0.035) / 1000, 3)
        assert units["DynamoDB, writes"] == round(calls * 0.8 / 1e6, 6)
        assert units["DynamoDB, reads"] == round(calls * 1.2 / 1e6, 6)
        assert units["logs"] == round(calls * 2.5 / 1e6, 6)
        assert units["traffic out"] == round(calls * 2 / 1e6, 6)


def test_alarms_are_those_of_the_template() -> None:
    assert [number(cell) for cell in UNITS["alarms"][2:]] == [monitored("WithAlarms")] * COLUMNS
    assert f"`all` adds {monitored('WithAllAlarms')} metrics" in PAGE
    devices, all_of_devices = monitored("WithDeviceAlarms"), monitored("WithAllDeviceAlarms")
    assert f"Devices add {devices}, and with `all` {all_of_devices} more." in PAGE


def test_updates_of_rate_limits_follow_from_the_defaults() -> None:
    """Two updates of a call that comes alone; of busy instances, one for each block of the key and of the tenant."""
    settings = Config()
    key, tenant = settings.key_calls_a_minute // _BLOCKS, settings.tenant_calls_a_minute // _BLOCKS
    price = number(UNITS["DynamoDB, writes"][0])
    assert f"one update takes {key} calls of the key, and\n  one {tenant} calls of the tenant" in PAGE
    assert f"from {price * (1 / key + 1 / tenant):.2f} a million where instances are busy to {2 * price:.2f}" in PAGE
