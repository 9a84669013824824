"""Alarms and the dashboard watch the deployed functions, by the metrics that calls emit."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
import yaml

from infra.deploy.observability import FILE
from infra.local.template import load
from shared.rpc.errors import NotFound, Unavailable
from shared.telemetry import count, observe

STACK: dict[str, Any] = yaml.safe_load(FILE.read_text())
ALARMS = {
    name: each["Properties"] for name, each in STACK["Resources"].items() if each["Type"] == "AWS::CloudWatch::Alarm"
}
WIDGETS = json.loads(STACK["Resources"]["Dashboard"]["Properties"]["DashboardBody"]["Fn::Sub"])["widgets"]


def functions_summed(metric: str) -> Counter[str]:
    """Count the occurrences of each function in the alarms' sums of `metric`."""
    stats = [
        each["MetricStat"]["Metric"]
        for alarm in ALARMS.values()
        for each in alarm.get("Metrics", [])
        if "MetricStat" in each
    ]
    return Counter(
        stat["Dimensions"][0]["Value"]["Fn::Sub"].removeprefix("${Stack}-")
        for stat in stats
        if stat["MetricName"] == metric
    )


@pytest.mark.parametrize("metric", ["Errors", "Throttles"])
def test_each_function_has_one_error_and_throttle_alarm(metric: str) -> None:
    assert functions_summed(metric) == Counter(list(load().functions))


def test_alarm_expressions_stay_within_the_metric_limit() -> None:
    assert max(len(alarm.get("Metrics", [])) for alarm in ALARMS.values()) <= 11  # ten metrics and the expression


def test_each_stream_worker_has_an_iterator_age_alarm() -> None:
    watched = {
        alarm["Dimensions"][0]["Value"]["Fn::Sub"].removeprefix("${Stack}-")
        for alarm in ALARMS.values()
        if alarm.get("MetricName") == "IteratorAge"
    }
    assert watched == {stream.function for stream in load().streams}


def test_each_server_has_fault_and_latency_alarms_on_emitted_metrics(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("POWERTOOLS_METRICS_NAMESPACE", "Kho/kho")
    monkeypatch.setenv("POWERTOOLS_METRICS_DISABLED", "false")
    servers = {function.partition("-")[0].replace("_", "-") for function in load().functions}
    for server in servers:
        metrics = metrics_of(f"{server}/anything", Unavailable(), capsys)
        assert metrics["service"] == server
        for metric in ("Faults", "Duration"):
            (alarm,) = [
                each
                for each in ALARMS.values()
                if each.get("MetricName") == metric and each["Dimensions"] == [{"Name": "service", "Value": server}]
            ]
            assert alarm["Namespace"]["Fn::Sub"].replace("${Stack}", "kho") == declared(metrics)["Namespace"]
            assert metric in [each["Name"] for each in declared(metrics)["Metrics"]]
        assert ["service"] in declared(metrics)["Dimensions"]


@pytest.mark.parametrize(
    ("error", "told"), [(None, set()), (NotFound(), {"Errors"}), (Unavailable(), {"Errors", "Faults"})]
)
def test_client_error_counts_as_error_not_fault(
    error: Exception | None,
    told: set[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("POWERTOOLS_METRICS_DISABLED", "false")
    metrics = metrics_of("memory-server/memory/get_context", error, capsys)
    names = {each["Name"] for each in declared(metrics)["Metrics"]}
    assert names - {"ColdStart"} == {"Calls", "Duration"} | told
    assert all(metrics[name] == [1] for name in told | {"Calls"})


def test_dashboard_uses_emitted_dimensions(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("POWERTOOLS_METRICS_DISABLED", "false")
    by_method = declared(metrics_of("memory-server/memory/get_context", None, capsys))["Dimensions"][0]
    searches = [
        metric["expression"]
        for widget in WIDGETS
        for row in widget["properties"]["metrics"]
        for metric in row
        if isinstance(metric, dict)
    ]
    assert searches
    assert all("{Kho/${Stack}," + ",".join(sorted(by_method)) + "}" in search for search in searches)


def test_call_emits_count_metrics(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("POWERTOOLS_METRICS_DISABLED", "false")
    metrics = metrics_of("agent-data/query_knowledge", None, capsys, qdrant_hits=12, degraded_answers=0)
    told = {metric["Name"] for metric in declared(metrics)["Metrics"]}
    assert (metrics["QdrantHits"], "QdrantHits" in told) == ([12.0], True)
    assert "DegradedAnswers" not in told


def metrics_of(
    method: str, error: Exception | None, capsys: pytest.CaptureFixture[str], **counts: int
) -> dict[str, Any]:
    """Return the metrics that one call, ended by `error`, emits to CloudWatch."""
    capsys.readouterr()
    try:
        with observe(method, "a-correlation-id"):
            count(**counts)
            if error:
                raise error
    except (NotFound, Unavailable):
        pass
    lines = capsys.readouterr().out.splitlines()
    (metrics,) = [json.loads(line) for line in lines if '"_aws"' in line]
    return dict(metrics)


def declared(left: dict[str, Any]) -> dict[str, Any]:
    (directive,) = left["_aws"]["CloudWatchMetrics"]
    return dict(directive)
