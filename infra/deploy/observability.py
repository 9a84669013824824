"""Alarms and the dashboard, made from what the template deploys."""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

from infra.local.template import logical_id

if TYPE_CHECKING:
    from infra.local.template import Template

FILE: Final = Path(__file__).with_name("observability.yaml")

_HEAD: Final = "# Made by `make generate` from template.yaml: see infra/deploy/observability.py.\n"
_PERIOD: Final = 300
_FAULTS: Final = 5
_SLOW_REQUEST: Final = 10_000
_SLOW_WORK: Final = 240_000
_LATE: Final = 600_000
_SUMMED: Final = 10
"""As many metrics as the expression of an alarm may take."""
_OWN: Final = {"Fn::Sub": "Kho/${Stack}"}
_COLUMNS: Final = 3
_WIDTH: Final = 24 // _COLUMNS
_HEIGHT: Final = 6


def observability(template: Template) -> str:
    """The nested stack that tells when the system is ill."""
    made = {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Description": "Kho - alarms and a dashboard.",
        "Parameters": {
            "Stack": {"Type": "String", "Description": "The name of the stack that is watched."},
            "Api": {"Type": "String", "Description": "The id of its HTTP API."},
            "DeadLetters": {"Type": "String", "Description": "The name of the queue of what workers could not do."},
            "Alarms": {
                "Type": "String",
                "AllowedValues": ["none", "essential", "all"],
                "Description": "Which alarms there are - all has those of crashes and throttles by server too.",
            },
            "Topic": {"Type": "String", "Description": "The SNS topic that is told, or nothing."},
        },
        "Conditions": {
            "WithAlarms": {"Fn::Not": [{"Fn::Equals": [{"Ref": "Alarms"}, "none"]}]},
            "WithAllAlarms": {"Fn::Equals": [{"Ref": "Alarms"}, "all"]},
            "WithTopic": {"Fn::Not": [{"Fn::Equals": [{"Ref": "Topic"}, ""]}]},
        },
        "Resources": _alarms(template)
        | {
            "Dashboard": {
                "Type": "AWS::CloudWatch::Dashboard",
                "Properties": {
                    "DashboardName": {"Ref": "Stack"},
                    "DashboardBody": {"Fn::Sub": json.dumps(_dashboard(template), separators=(",", ":"))},
                },
            }
        },
    }
    return _HEAD + yaml.dump(made, sort_keys=False, default_flow_style=None, width=150, Dumper=_WithoutAliases)


class _WithoutAliases(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - yaml's signature
        return True


def _alarms(template: Template) -> dict[str, Any]:
    alarms: dict[str, Any] = {
        "GatewayFaults": _alarm(
            "gateway-faults",
            _metric("AWS/ApiGateway", "5xx", {"ApiId": {"Ref": "Api"}}) | {"Statistic": "Sum"},
            threshold=_FAULTS,
        ),
        "Crashes": _alarm("crashes", _metric("AWS/Lambda", "Errors") | {"Statistic": "Sum"}, threshold=_FAULTS),
        "Throttles": _alarm("throttles", _metric("AWS/Lambda", "Throttles") | {"Statistic": "Sum"}, threshold=1),
        "DeadLettersThere": _alarm(
            "dead-letters",
            _metric("AWS/SQS", "ApproximateNumberOfMessagesVisible", {"QueueName": {"Ref": "DeadLetters"}})
            | {"Statistic": "Maximum"},
            threshold=1,
        ),
    }
    for function in sorted({each.function for each in template.streams}):
        alarms[f"{logical_id(function)}Late"] = _alarm(
            f"{function}-late",
            _metric("AWS/Lambda", "IteratorAge", {"FunctionName": _deployed(function)}) | {"Statistic": "Maximum"},
            threshold=_LATE,
            periods=2,
        )
    for server, functions in _servers(template).items():
        own = {"service": server}
        slow = _SLOW_WORK if server == "workers" else _SLOW_REQUEST
        alarms[f"{logical_id(server)}Faults"] = _alarm(
            f"{server}-faults", _metric(_OWN, "Faults", own) | {"Statistic": "Sum"}, threshold=_FAULTS
        )
        alarms[f"{logical_id(server)}Slow"] = _alarm(
            f"{server}-slow",
            _metric(_OWN, "Duration", own) | {"ExtendedStatistic": "p99"},
            threshold=slow,
            periods=3,
        )
        for kind, name in (("Errors", "crashes"), ("Throttles", "throttles")):
            for number, some in enumerate(_parts(functions), start=1):
                alarms[f"{logical_id(server)}{name.title()}{number}"] = _alarm(
                    f"{server}-{name}-{number}", _summed(kind, some), threshold=1, condition="WithAllAlarms"
                )
    return alarms


def _alarm(
    name: str, watched: dict[str, Any], *, threshold: int, periods: int = 1, condition: str = "WithAlarms"
) -> dict[str, Any]:
    kind = name.rpartition("-")[0] if name[-1].isdigit() else name
    return {
        "Type": "AWS::CloudWatch::Alarm",
        "Condition": condition,
        "Properties": {
            "AlarmName": {"Fn::Sub": f"${{Stack}}-{name}"},
            "AlarmDescription": f"docs/operating.md says what to do at {kind.rpartition('-')[2]}.",
            **watched,
            "ComparisonOperator": "GreaterThanOrEqualToThreshold",
            "Threshold": threshold,
            "EvaluationPeriods": periods,
            "TreatMissingData": "notBreaching",
            "AlarmActions": {"Fn::If": ["WithTopic", [{"Ref": "Topic"}], {"Ref": "AWS::NoValue"}]},
            "OKActions": {"Fn::If": ["WithTopic", [{"Ref": "Topic"}], {"Ref": "AWS::NoValue"}]},
        },
    }


def _metric(namespace: Any, name: str, dimensions: dict[str, Any] | None = None) -> dict[str, Any]:
    return {
        "Namespace": namespace,
        "MetricName": name,
        "Dimensions": [{"Name": key, "Value": value} for key, value in (dimensions or {}).items()],
        "Period": _PERIOD,
    }


def _summed(name: str, functions: list[str]) -> dict[str, Any]:
    """One metric of several functions, for Lambda knows nothing of servers."""
    each = [
        {
            "Id": f"m{number}",
            "ReturnData": False,
            "MetricStat": {
                "Metric": {
                    "Namespace": "AWS/Lambda",
                    "MetricName": name,
                    "Dimensions": [{"Name": "FunctionName", "Value": _deployed(function)}],
                },
                "Period": _PERIOD,
                "Stat": "Sum",
            },
        }
        for number, function in enumerate(functions)
    ]
    return {"Metrics": [{"Id": "all", "Expression": "SUM(METRICS())", "ReturnData": True}, *each]}


def _dashboard(template: Template) -> dict[str, Any]:
    panels = [
        _panel("Gateway", [["AWS/ApiGateway", name, "ApiId", "${Api}"] for name in ("Count", "4xx", "5xx")], "Sum"),
        _panel("Gateway, p99", [["AWS/ApiGateway", "Latency", "ApiId", "${Api}"]], "p99"),
        _panel(
            "What workers could not do",
            [["AWS/SQS", "ApproximateNumberOfMessagesVisible", "QueueName", "${DeadLetters}"]],
            "Maximum",
        ),
    ]
    for server in _servers(template):
        counts = [["Kho/${Stack}", name, "service", server] for name in ("Calls", "Errors", "Faults", "ColdStart")]
        panels += [
            _panel(server, counts),
            _panel(f"{server}, p99 by method", [[_search("Duration", server, "p99")]]),
            _panel(f"{server}, errors by method", [[_search("Errors", server, "Sum")]]),
        ]
    workers = sorted({each.function for each in template.streams})
    late = [["AWS/Lambda", "IteratorAge", "FunctionName", f"${{Stack}}-{function}"] for function in workers]
    panels.append(_panel("How late workers are", late, "Maximum"))
    return {"widgets": [_placed(panel, number) for number, panel in enumerate(panels)]}


def _search(name: str, server: str, statistic: str) -> dict[str, str]:
    schema = "{Kho/${Stack},method,service}"
    query = f'{schema} MetricName="{name}" service="{server}"'
    return {"expression": f"SEARCH('{query}', '{statistic}', {_PERIOD})", "label": ""}


def _panel(title: str, metrics: list[Any], statistic: str = "Sum") -> dict[str, Any]:
    properties = {
        "title": title,
        "region": "${AWS::Region}",
        "metrics": metrics,
        "stat": statistic,
        "period": _PERIOD,
        "view": "timeSeries",
    }
    return {"type": "metric", "properties": properties}


def _placed(panel: dict[str, Any], number: int) -> dict[str, Any]:
    row, column = divmod(number, _COLUMNS)
    return {"x": column * _WIDTH, "y": row * _HEIGHT, "width": _WIDTH, "height": _HEIGHT, **panel}


def _servers(template: Template) -> dict[str, list[str]]:
    """The functions of each server, the doors and the workers among them."""
    by_server = groupby(sorted(template.functions), key=lambda function: function.partition("-")[0])
    return {server.replace("_", "-"): list(functions) for server, functions in by_server}


def _parts(functions: list[str]) -> list[list[str]]:
    return [functions[start : start + _SUMMED] for start in range(0, len(functions), _SUMMED)]


def _deployed(function: str) -> dict[str, str]:
    return {"Fn::Sub": f"${{Stack}}-{function}"}
