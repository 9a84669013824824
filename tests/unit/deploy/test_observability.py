"""Alarms and the dashboard watch the deployed functions, by the metrics that calls emit."""

from __future__ import annotations

import json
import re
import secrets
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from infra.deploy.observability import FILE
from infra.local.template import document, load
from shared.platform.telemetry import count
from shared.rpc.errors import NotFound, Unavailable
from shared.rpc.observation import observe
from shared.search.embedding.function import BULK_FUNCTION
from tests.helpers.template import RESOURCES

if TYPE_CHECKING:
    from pathlib import Path

STACK: dict[str, Any] = document(FILE.read_text())
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
        if stat["MetricName"] == metric and stat["Dimensions"]
    )


@pytest.mark.parametrize("metric", ["Errors", "Throttles"])
def test_each_function_has_one_error_and_throttle_alarm(metric: str) -> None:
    assert functions_summed(metric) == Counter(list(load().functions))


def test_bulk_embedding_at_its_bound_sounds_no_alarm() -> None:
    """Its throttles are subtracted from the account's, and are in no server's sum."""
    expression, account, bulk = ALARMS["Throttles"]["Metrics"]
    assert expression["Expression"] == "m0 - FILL(m1, 0)"
    assert account["MetricStat"]["Metric"]["Dimensions"] == []
    assert bulk["MetricStat"]["Metric"]["Dimensions"][0]["Value"] == {"Fn::Sub": f"${{Stack}}-{BULK_FUNCTION}"}
    assert BULK_FUNCTION not in json.dumps([ALARMS[name] for name in ALARMS if name.startswith("WorkersThrottles")])


def test_alarm_expressions_stay_within_the_metric_limit() -> None:
    assert max(len(alarm.get("Metrics", [])) for alarm in ALARMS.values()) <= 11  # ten metrics and the expression


def test_percentile_alarms_ignore_low_samples() -> None:
    percentiles = [alarm for alarm in ALARMS.values() if "ExtendedStatistic" in alarm]
    assert percentiles
    assert all(alarm["EvaluateLowSampleCountPercentile"] == "ignore" for alarm in percentiles)


@pytest.mark.parametrize(
    ("alarm", "metric"), [("GatewayClientErrors", "4xx"), ("GatewayThrottles", "ThrottledRequests")]
)
def test_share_alarms_divide_by_the_requests(alarm: str, metric: str) -> None:
    expression, part, total = ALARMS[alarm]["Metrics"]
    assert expression["Expression"] == "IF(m1 >= 100, 100 * FILL(m0, 0) / m1, 0)"
    assert (part["Id"], part["MetricStat"]["Metric"]["MetricName"]) == ("m0", metric)
    assert (total["Id"], total["MetricStat"]["Metric"]["MetricName"]) == ("m1", "Count")
    filters = STACK["Resources"]["ThrottledRequests"]["Properties"]
    assert filters["FilterPattern"] == '{ $.status = "429" }'
    assert filters["MetricTransformations"][0]["MetricName"] == "ThrottledRequests"


@pytest.mark.parametrize("kind", ["Read", "Write"])
def test_every_table_has_throttle_alarms(kind: str) -> None:
    alarm = ALARMS[f"Table{kind}Throttles"]
    tables = [each["MetricStat"]["Metric"] for each in alarm["Metrics"][1:]]
    assert {each["MetricName"] for each in tables} == {f"{kind}ThrottleEvents"}
    watched = [each["Dimensions"][0]["Value"]["Fn::Select"] for each in tables]
    assert watched == [[number, {"Ref": "Tables"}] for number in range(len(load().tables))]
    passed = RESOURCES["Observability"]["Properties"]["Parameters"]["Tables"]["Fn::Join"][1]
    assert {each["Ref"] for each in passed} == {table.logical for table in load().tables}
    assert len(passed) == len(load().tables)


def test_device_alarms_exist_only_with_devices() -> None:
    conditions = {
        name: each["Condition"]
        for name, each in STACK["Resources"].items()
        if name.startswith(("Boards", "Device")) and not name.startswith("DeviceServer")
    }
    assert conditions
    assert set(conditions.values()) == {"WithDeviceAlarms", "WithAllDeviceAlarms"}
    passed = RESOURCES["Observability"]["Properties"]["Parameters"]["DeviceRules"]["Fn::If"]
    rules = [each["Ref"] for each in passed[1]["Fn::Join"][1]]
    assert sorted(rules) == sorted(name for name, each in RESOURCES.items() if each["Type"] == "AWS::IoT::TopicRule")
    assert len(passed[2].split(",")) == len(rules)


def test_failed_error_action_of_each_rule_has_an_alarm() -> None:
    """A message that reaches neither the rule's function nor the dead-letter queue would be lost unseen."""
    metrics = [each["MetricStat"]["Metric"] for each in ALARMS["DeviceErrorActionFailures"]["Metrics"][1:]]
    assert {each["MetricName"] for each in metrics} == {"ErrorActionFailure"}
    watched = {each["Dimensions"][0]["Value"]["Fn::Select"][0] for each in metrics}
    assert watched == set(range(len(load().rules)))


def test_dashboard_fits_into_the_free_tier() -> None:
    metrics = [each for widget in WIDGETS for each in widget["properties"].get("metrics", [])]
    assert len(metrics) <= 50


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
        service = "endpoints" if server in ("discovery", "oauth") else server
        assert metrics["service"] == service
        for metric in ("Faults", "Duration"):
            (alarm,) = [
                each
                for each in ALARMS.values()
                if each.get("MetricName") == metric and each["Dimensions"] == [{"Name": "service", "Value": service}]
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
    assert names == {"Calls", "Duration"} | told
    assert all(metrics[name] == [1] for name in told | {"Calls"})


def test_dashboard_uses_emitted_dimensions(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("POWERTOOLS_METRICS_DISABLED", "false")
    emitted = declared(metrics_of("memory-server/memory/get_context", None, capsys))["Dimensions"]
    own = [
        metric[2::2]
        for widget in WIDGETS
        for metric in widget["properties"].get("metrics", [])
        if metric[0] == "Kho/${Stack}"
    ]
    assert own
    assert all(dimensions in emitted for dimensions in own)


def test_dashboard_reads_every_functions_log() -> None:
    queries = [widget["properties"]["query"] for widget in WIDGETS if widget["type"] == "log"]
    read = re.findall(r"SOURCE '/kho/\$\{Stack\}/([\w-]+)'", " ".join(queries))
    assert sorted(read) == sorted(load().functions)


def test_metrics_by_method_are_optional(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("POWERTOOLS_METRICS_DISABLED", "false")
    assert declared(metrics_of("recall-kit/get_experience", None, capsys))["Dimensions"] == [["service"]]
    monkeypatch.setenv("KHO_METHOD_METRICS", "true")
    sets = declared(metrics_of("recall-kit/get_experience", None, capsys))["Dimensions"]
    assert sorted(map(sorted, sets)) == [["method", "service"], ["service"]]


def test_sampling_keeps_failures_and_the_same_calls_everywhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def logged(method: str, error: Exception | None = None) -> set[str]:
        file = tmp_path / secrets.token_hex(8)
        monkeypatch.setenv("KHO_LOG_FILE", str(file))
        for number in range(200):
            with suppress(NotFound), observe(method, f"correlation-{number}"):
                if error:
                    raise error
        lines = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
        return {line["correlation_id"] for line in lines}

    everything = logged("endpoints/jsonrpc")
    assert len(everything) == 200
    monkeypatch.setenv("KHO_LOG_SAMPLING", "10")
    sample = logged("endpoints/jsonrpc")
    assert 0 < len(sample) < 50
    assert logged("memory-server/memory/get_context") == sample
    assert logged("memory-server/memory/get_context", NotFound()) == everything
    monkeypatch.setenv("KHO_LOG_SAMPLING", "0")
    assert logged("endpoints/jsonrpc") == set()


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
