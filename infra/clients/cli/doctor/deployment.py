"""The checks of a deployed stack, with the operator's own AWS credentials."""

from __future__ import annotations

import socket
import ssl
from typing import TYPE_CHECKING, Any, Final

import boto3

from infra.clients.cli.doctor import checks
from infra.clients.cli.index_record import check_splitter
from infra.clients.cli.target import open_stores, table_name
from infra.local.template import load
from shared.platform.config import config
from shared.services import diagnostics

if TYPE_CHECKING:
    from infra.clients.cli.target import DataTarget
    from shared.services.diagnostics import CheckReport

_HEALTHY_STATES: Final = ("CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE", "IMPORT_COMPLETE")
_LOW_CONCURRENCY: Final = 100
_MQTT_TLS: Final = 8883


def check(target: DataTarget, report: CheckReport) -> None:
    """Check the stack and the services that its functions use."""
    stack = target.stack
    outputs = _check_stack(stack, report)
    if "Endpoint" in outputs:
        checks.check_http_endpoint(report, outputs["Endpoint"], "Check the function discovery-health and its log.")
    with open_stores(target):
        checks.check_tables(report)
        _check_table_settings(report)
        diagnostics.check_keys(report, f"kho keys create --stack {stack} --tenant <name> --role admin")
        if config().qdrant_url:
            diagnostics.check_index(report)
            check_splitter(report)
        else:
            report.note("Qdrant", "None is configured: searches return 503.", "Deploy with the parameter QdrantUrl.")
        diagnostics.check_model(report)
    _check_concurrency(report)
    _check_workers(stack, report)
    _check_dead_letters(stack, report)
    _check_iot(report)


def _check_stack(stack: str, report: CheckReport) -> dict[str, str]:
    outputs: dict[str, str] = {}
    with report.guard("Stack", "Correct --stack, or choose its region with AWS_REGION."):
        (description,) = boto3.client("cloudformation").describe_stacks(StackName=stack)["Stacks"]
        status = description["StackStatus"]
        if status in _HEALTHY_STATES:
            report.good("Stack", f"{stack} is {status}.")
        else:
            report.wrong("Stack", f"{stack} is {status}.", "See the stack's events in CloudFormation.")
        outputs.update({each["OutputKey"]: each["OutputValue"] for each in description.get("Outputs", [])})
    return outputs


def _check_table_settings(report: CheckReport) -> None:
    """Check that tables have their TTL attribute and point-in-time recovery."""
    client = boto3.client("dynamodb")
    for definition in load().tables:
        name = table_name(definition)
        with report.guard(name, "Deploy the template again."):
            expiry = client.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
            backups = client.describe_continuous_backups(TableName=name)["ContinuousBackupsDescription"]
            recovery = backups.get("PointInTimeRecoveryDescription", {}).get("PointInTimeRecoveryStatus")
            if definition.expiry_attribute and expiry.get("AttributeName") != definition.expiry_attribute:
                report.wrong(name, "The table has no time to live.", "Deploy the template again.")
            if recovery != "ENABLED":
                report.wrong(name, "The table has no point-in-time recovery.", "Deploy the template again.")


def _check_concurrency(report: CheckReport) -> None:
    with report.guard("Concurrency", "This check only reads the account's limit."):
        limit = boto3.client("lambda").get_account_settings()["AccountLimit"]["ConcurrentExecutions"]
        if limit < _LOW_CONCURRENCY:
            report.note(
                "Concurrency",
                f"This account may run {limit} functions concurrently: a batch or a busy minute exceeds that.",
                "Request more in Service Quotas: Lambda, Concurrent executions.",
            )
        else:
            report.good("Concurrency", f"This account may run {limit} functions concurrently.")


def _check_workers(stack: str, report: CheckReport) -> None:
    client = boto3.client("lambda")
    for function in sorted({each.function for each in load().streams}):
        subject = f"Worker {function.partition('-')[2]}"
        with report.guard(subject, "Deploy again."):
            mappings: list[Any] = client.list_event_source_mappings(FunctionName=f"{stack}-{function}")[
                "EventSourceMappings"
            ]
            states = [each.get("State", "") for each in mappings]
            if states and all(state == "Enabled" for state in states):
                report.good(subject, "Its event source mapping is enabled.")
            else:
                report.wrong(
                    subject,
                    f"Its event source mapping is not enabled ({', '.join(states) or 'there is none'}).",
                    "Enable its event source mapping.",
                )


def _check_dead_letters(stack: str, report: CheckReport) -> None:
    with report.guard("Dead letters", "This check only reads the queue's length."):
        resource = boto3.client("cloudformation").describe_stack_resource(
            StackName=stack, LogicalResourceId="DeadLetters"
        )["StackResourceDetail"]
        attributes = boto3.client("sqs").get_queue_attributes(
            QueueUrl=resource["PhysicalResourceId"], AttributeNames=["ApproximateNumberOfMessages"]
        )["Attributes"]
        waiting = int(attributes["ApproximateNumberOfMessages"])
        if waiting:
            report.wrong("Dead letters", f"{waiting} are in the queue.", "See dead-letters in docs/operating.md.")
        else:
            report.good("Dead letters", "There are none.")


def _check_iot(report: CheckReport) -> None:
    if not config().iot_endpoint:
        report.note("Devices", "The stack has none.", "Deploy with the parameter IotEndpoint to have them.")
        return
    with report.guard("Devices", "Allow this machine to reach IoT Core on port 8883, or check from another one."):
        host = boto3.client("iot").describe_endpoint(endpointType="iot:Data-ATS")["endpointAddress"]
        with (
            socket.create_connection((host, _MQTT_TLS), timeout=5) as plain,
            ssl.create_default_context().wrap_socket(plain, server_hostname=host),
        ):
            report.good("Devices", f"{host} accepts connections on port {_MQTT_TLS}.")
